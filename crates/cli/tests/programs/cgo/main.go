package main

// #cgo CFLAGS: -O1
// long count_down(long from);
import "C"
import (
	"fmt"
	"sync"
)

// Goroutines that the runtime preempts by signals, in Go and in C, on more threads than there are processors.
func main() {
	var group sync.WaitGroup
	sums := make([]int64, 6)
	for i := range sums {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for round := 0; round < 20; round++ {
				sum := int64(0)
				for n := int64(0); n < 4000000; n++ {
					sum += n & 3
				}
				sums[i] += sum + int64(C.count_down(1000000))
			}
		}(i)
	}
	group.Wait()
	fmt.Println(sums)
}
