/* Operations that wait for an event of the program's which fails: they never run. Then the program, by its argument,
 * waits for them ("wait"), finishes its queues ("finish"), releases them ("release"), or ends ("exit"). */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *source = "kernel void scale(global float *x) { x[get_global_id(0)] *= 2; }";
static int bad(const char *what, cl_int status) { fprintf(stderr, "%s: %d\n", what, status); exit(2); }
#define CHECK(call) do { cl_int status_ = (call); if (status_ != CL_SUCCESS) bad(#call, status_); } while (0)

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "exit";
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "scale", &status);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 1024, NULL, &status);
    CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    size_t global = 256;
    for (int order = 0; order < 2; order++) {
        cl_command_queue queue = clCreateCommandQueue(context, device, order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &status);
        CHECK(status);
        cl_event last, failed, gate = clCreateUserEvent(context, &status);
        CHECK(status);
        for (int round = 0; round < 10; round++) CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, &last));
        CHECK(clWaitForEvents(1, &last));
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 1, &gate, &failed));
        CHECK(clSetUserEventStatus(gate, -5));
        if (strcmp(how, "wait") == 0 && clWaitForEvents(1, &failed) == CL_SUCCESS) return 4;
        if (strcmp(how, "finish") == 0) clFinish(queue);
        if (strcmp(how, "release") == 0) CHECK(clReleaseCommandQueue(queue));
    }
    puts("two failed");
    return 0;
}
