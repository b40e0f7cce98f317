"""Trains a small network with PyTorch on the GPU: two streams, a thread that copies, a captured graph, losses that are read back.

    python3 train.py [STEPS] [profiler]

With "profiler", PyTorch's own profiler, which uses CUPTI too, records the last steps. The last line names the seconds that the steps took.
"""

import json
import sys
import threading
import time

import torch


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with_profiler = "profiler" in sys.argv[2:]
    torch.manual_seed(1)
    device = torch.device("cuda")
    model = torch.nn.Sequential(
        torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    batches = [torch.randn(256, 1024).pin_memory() for _ in range(4)]
    labels = torch.randint(0, 10, (256,), device=device)

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(batch), labels)
        loss.backward()
        optimizer.step()
        return loss

    copies = torch.cuda.Stream()
    running = True

    def copy_beside():
        with torch.cuda.stream(copies):
            while running:
                batches[0].to(device, non_blocking=True).sum()
                copies.synchronize()
                time.sleep(0.001)

    step(batches[0].to(device)).item()
    thread = threading.Thread(target=copy_beside)
    thread.start()
    begin = time.perf_counter()
    losses = []
    for number in range(steps):
        loss = step(batches[number % 4].to(device, non_blocking=True))
        if number % 10 == 9:
            losses.append(loss.item())
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    running = False
    thread.join()

    # A graph of the forward pass.
    static = torch.zeros(256, 1024, device=device)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(static)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        out = model(static)
    for number in range(20):
        static.copy_(batches[number % 4], non_blocking=True)
        graph.replay()
    result = out.sum().item()

    if with_profiler:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for number in range(5):
                step(batches[number % 4].to(device, non_blocking=True))
            torch.cuda.synchronize()
        print("profiled", sum(event.count for event in profiler.key_averages()) > 0)
    print(json.dumps({"seconds": round(seconds, 6), "steps": steps, "loss": round(losses[-1], 4), "graph": result == result, "graphs": 20}))


main()
