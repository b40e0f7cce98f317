/* Two threads share three queues, one in-order and two out-of-order, and put kernels and writes into
 * them. The program asks for no profiling, and for few events.
 *
 *     cc -O2 queues.c -o queues -lOpenCL -lpthread && ./queues [OPERATIONS] [exit]
 *
 * With "exit" it ends without waiting for its queues. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *source =
    "kernel void spin(global float *x, int n) {\n"
    "  int i = get_global_id(0); float v = x[i];\n"
    "  for (int k = 0; k < n; k++) v = v * 1.000001f + 0.5f;\n"
    "  x[i] = v;\n"
    "}\n";

static cl_command_queue queues[3];
static cl_context context;
static cl_program program;
static int per_thread = 200;

static void check(cl_int status, const char *what)
{
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

static void *work(void *argument)
{
    long thread = (long) argument;
    cl_int status;
    cl_mem buffers[3];
    float host[256] = { 0 };
    cl_kernel kernel = clCreateKernel(program, "spin", &status);
    check(status, "clCreateKernel");
    for (int q = 0; q < 3; q++) {
        buffers[q] = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof host, NULL, &status);
        check(status, "clCreateBuffer");
    }
    cl_event last = NULL;
    for (int i = 0; i < per_thread; i++) {
        int q = (i + thread) % 3;
        cl_event *wanted = i == per_thread - 1 ? &last : NULL;
        if (i % 5 == 4) {
            status = clEnqueueWriteBuffer(queues[q], buffers[q], CL_FALSE, 0, sizeof host, host, 0, NULL, wanted);
        } else {
            int n = 1000 + 500 * (i % 7);
            size_t global = 256;
            clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffers[q]);
            clSetKernelArg(kernel, 1, sizeof n, &n);
            status = clEnqueueNDRangeKernel(queues[q], kernel, 1, NULL, &global, NULL, 0, NULL, wanted);
        }
        check(status, "enqueue");
    }
    /* A call that fails must not count as an operation. */
    if (clEnqueueWriteBuffer(queues[0], NULL, CL_FALSE, 0, 1, host, 0, NULL, NULL) == CL_SUCCESS)
        exit(1);
    /* The event that was asked for is the program's own. */
    cl_int state;
    check(clWaitForEvents(1, &last), "clWaitForEvents");
    check(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL), "clGetEventInfo");
    if (state != CL_COMPLETE)
        exit(1);
    check(clReleaseEvent(last), "clReleaseEvent");
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        per_thread = atoi(argv[1]) / 2;
    int leave = argc > 2 && strcmp(argv[2], "exit") == 0;
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    for (int q = 0; q < 3; q++) {
        cl_command_queue_properties properties = q == 0 ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        queues[q] = clCreateCommandQueue(context, device, properties, &status);
        check(status, "clCreateCommandQueue");
    }
    pthread_t threads[2];
    for (long t = 0; t < 2; t++)
        pthread_create(&threads[t], NULL, work, (void *) t);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    if (leave) {
        printf("left %d operations\n", 2 * per_thread);
        return 0;
    }
    for (int q = 0; q < 3; q++) {
        check(clFinish(queues[q]), "clFinish");
        check(clReleaseCommandQueue(queues[q]), "clReleaseCommandQueue");
    }
    printf("%d operations\n", 2 * per_thread);
    return 0;
}
