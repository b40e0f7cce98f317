/* One thread submits kernels and returns from a call only when the device is done: a read, a map, a wait for an event, a
 * finish. With OpenMP, the second thread waits for it at the end of the region. Exit 3: there is no device. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source =
    "kernel void slow(global float *x, int n) {\n"
    "  float v = x[get_global_id(0)];\n"
    "  for (int i = 0; i < n; i++) v = v * 0.999f + 0.5f;\n"
    "  x[get_global_id(0)] = v;\n"
    "}\n";
#define CHECK(call) do { if ((call) != CL_SUCCESS) return 2; } while (0)

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 3;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    static float data[1 << 12];
    size_t items = 1 << 12;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, &status);
    cl_kernel kernel = clCreateKernel(program, "slow", &status);
    int length = 10000;
    CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    CHECK(clSetKernelArg(kernel, 1, sizeof length, &length));
    int failed = 0;
    #pragma omp parallel num_threads(2)
    #pragma omp single
    for (int round = 0; round < 2; round++) {
        cl_event ran;
        failed |= clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL);
        failed |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
        failed |= clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL);
        failed |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, &ran);
        failed |= clWaitForEvents(1, &ran);
        failed |= clReleaseEvent(ran);
        failed |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
        void *mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, sizeof data, 0, NULL, NULL, &status);
        failed |= status;
        failed |= clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL);
        failed |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
        failed |= clFinish(queue);
    }
    puts(failed ? "failed" : "8 kernels");
    return failed != 0;
}
