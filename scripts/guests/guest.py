"""Threads, a subprocess, a timer's signal and sleeping calls: the same result in every run."""
import hashlib
import signal
import subprocess
import sys
import threading
import time

ticks = []
signal.signal(signal.SIGALRM, lambda number, frame: ticks.append(number))
results = [None] * 3


def work(index):
    data = bytes([index]) * 100000
    for _ in range(20):
        data = hashlib.sha256(data).digest() * 3000
    results[index] = data[:4].hex()


threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
for thread in threads:
    thread.start()
signal.setitimer(signal.ITIMER_REAL, 0.01)
time.sleep(0.03)
for thread in threads:
    thread.join()
child = subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True, check=False)
print(results, len(ticks), child.stdout, child.returncode)
sys.exit(21)
