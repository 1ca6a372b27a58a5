//go:build !linux

package process

import "time"

// CPU returns 0.
func CPU(...int) time.Duration { return 0 }

// Resident returns 0.
func Resident(...int) int64 { return 0 }

// Busy returns 0.
func Busy() time.Duration { return 0 }

// SystemCalls returns 0.
func SystemCalls(int) int64 { return 0 }

// Moved returns 0.
func Moved(int) int64 { return 0 }
