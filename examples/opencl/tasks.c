/* OpenMP tasks that each put a kernel and a read into one shared OpenCL queue, and wait for the read.
 *
 *     clang -O2 -fopenmp tasks.c -o tasks -lOpenCL && taskscope record -- ./tasks
 *
 * The report tells which task submitted what, and why the queue was idle: between tasks nothing is
 * submitted. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static const char *source =
    "kernel void scale(global float *x) {\n"
    "  int i = get_global_id(0); float v = x[i];\n"
    "  for (int k = 0; k < 2000; k++) v = v * 1.000001f + 0.5f;\n"
    "  x[i] = v;\n"
    "}\n";

static void check(cl_int status, const char *what)
{
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

int main(void)
{
    enum { TASKS = 12 };
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int t = 0; t < TASKS; t++) {
#pragma omp task firstprivate(t)
        {
            float host[256];
            size_t global = 256;
            cl_int status;
            cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof host, NULL, &status);
            cl_kernel kernel = clCreateKernel(program, "scale", &status);
            clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
            check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL), "kernel");
            check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof host, host, 0, NULL, NULL), "read");
            clReleaseKernel(kernel);
            clReleaseMemObject(buffer);
        }
    }
    check(clFinish(queue), "clFinish");
    clReleaseCommandQueue(queue);
    printf("%d tasks\n", TASKS);
    return 0;
}
