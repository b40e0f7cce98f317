/* What programs do with OpenCL besides enqueueing: two contexts, user events, a queue that is released
 * while its operations run, a handle that is used again, calls that fail, mapping, blocking copies. No
 * queue has profiling, and few operations an event. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static const char *source = "kernel void scale(global float *x) { x[get_global_id(0)] *= 2; }";
static int bad(const char *what, cl_int status) { fprintf(stderr, "%s: %d\n", what, status); exit(2); }
#define CHECK(call) do { cl_int status_ = (call); if (status_ != CL_SUCCESS) bad(#call, status_); } while (0)

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return 3;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return 3;
    float data[256] = {1};
    for (int number = 0; number < 2; number++) {
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
        CHECK(status);
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
        CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
        cl_kernel kernel = clCreateKernel(program, "scale", &status);
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, &status);
        CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        size_t global = 256;

        /* In order, without events; a call that fails is no operation. */
        cl_command_queue first = clCreateCommandQueue(context, device, 0, &status);
        CHECK(status);
        CHECK(clEnqueueWriteBuffer(first, buffer, CL_FALSE, 0, sizeof data, data, 0, NULL, NULL));
        for (int round = 0; round < 10; round++) CHECK(clEnqueueNDRangeKernel(first, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
        if (clEnqueueNDRangeKernel(first, kernel, 7, NULL, &global, NULL, 0, NULL, NULL) == CL_SUCCESS) return 4;
        CHECK(clEnqueueReadBuffer(first, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
        void *mapped = clEnqueueMapBuffer(first, buffer, CL_TRUE, CL_MAP_READ, 0, sizeof data, 0, NULL, NULL, &status);
        CHECK(status);
        CHECK(clEnqueueUnmapMemObject(first, buffer, mapped, 0, NULL, NULL));
        CHECK(clFinish(first));

        /* Out of order: half waits for an event of the program's, which is set when the others are done. */
        cl_command_queue second = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
        CHECK(status);
        cl_event gate = clCreateUserEvent(context, &status);
        CHECK(status);
        cl_event gated[5], last;
        for (int round = 0; round < 5; round++) CHECK(clEnqueueNDRangeKernel(second, kernel, 1, NULL, &global, NULL, 1, &gate, &gated[round]));
        for (int round = 0; round < 5; round++) CHECK(clEnqueueNDRangeKernel(second, kernel, 1, NULL, &global, NULL, 0, NULL, round == 4 ? &last : NULL));
        CHECK(clWaitForEvents(1, &last));
        CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
        CHECK(clWaitForEvents(5, gated));
        cl_ulong stamp;
        /* The program asked for no profiling, and sees none; its events stay its own. */
        if (clGetEventProfilingInfo(gated[0], CL_PROFILING_COMMAND_START, sizeof stamp, &stamp, NULL) != CL_PROFILING_INFO_NOT_AVAILABLE) return 5;
        cl_command_queue_properties properties;
        CHECK(clGetCommandQueueInfo(second, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
        if (properties != CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) return 6;
        cl_uint references;
        CHECK(clGetEventInfo(gated[0], CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL));
        for (int round = 0; round < 5; round++) CHECK(clReleaseEvent(gated[round]));
        CHECK(clReleaseEvent(last));

        /* Released at once: its operations still run. A queue after it may get the same handle. */
        for (int round = 0; round < 3; round++) {
            cl_command_queue brief = clCreateCommandQueue(context, device, 0, &status);
            CHECK(status);
            CHECK(clEnqueueNDRangeKernel(brief, kernel, 1, NULL, &global, NULL, 0, NULL, &last));
            CHECK(clFlush(brief));
            CHECK(clReleaseCommandQueue(brief));
            CHECK(clWaitForEvents(1, &last));
            CHECK(clReleaseEvent(last));
        }
        CHECK(clReleaseEvent(gate));
        CHECK(clReleaseCommandQueue(first));
        CHECK(clReleaseCommandQueue(second));
        CHECK(clReleaseKernel(kernel));
        CHECK(clReleaseProgram(program));
        CHECK(clReleaseMemObject(buffer));
        CHECK(clReleaseContext(context));
    }
    puts("two contexts");
    return 0;
}
