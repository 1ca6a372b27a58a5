//go:build !linux

package main

import "time"

// On systems other than Linux only throughput and latency are measured.

func cpu(...int) time.Duration { return 0 }
func resident(...int) int64    { return 0 }
func busy() time.Duration      { return 0 }
func systemCalls(int) int64    { return 0 }
