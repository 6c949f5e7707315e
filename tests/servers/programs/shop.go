// SPDX-License-Identifier: LGPL-2.1-or-later

// An HTTP server and its clients in one process. Requests share a lock and are entered into a file, now and then to the disk.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	clients   = 6
	syncEvery = 50
)

type shop struct {
	lock    sync.Mutex
	journal *os.File
	sold    int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.sold++
	receipt := fmt.Sprintf("sold %d\n", s.sold)
	if _, err := s.journal.WriteString(receipt); err != nil {
		log.Fatal(err)
	}
	if s.sold%syncEvery == 0 {
		if err := s.journal.Sync(); err != nil {
			log.Fatal(err)
		}
	}
	time.Sleep(time.Millisecond)
	io.WriteString(w, receipt)
}

func buy(url string) {
	client := http.Client{Transport: &http.Transport{}}
	for {
		answer, err := client.Get(url)
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

func main() {
	journal, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; i < clients; i++ {
		go buy("http://" + listener.Addr().String() + "/")
	}
	fmt.Println("ready", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, &shop{journal: journal}))
}
