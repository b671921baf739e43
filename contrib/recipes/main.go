// Goroutines that call one function and wait for the mutex that it takes.
package main

import (
	"fmt"
	"sync"
)

var mutex sync.Mutex

//go:noinline
func work(n int) int {
	mutex.Lock()
	defer mutex.Unlock()
	sum := 0
	for i := 0; i < n; i++ {
		sum = (sum + i*i) % 1000003
	}
	return sum
}

func main() {
	var group sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for call := 0; call < 500; call++ {
				work(100000)
			}
		}()
	}
	group.Wait()
	fmt.Println("2000 calls")
}
