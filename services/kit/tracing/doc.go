// Package tracing records the spans of requests and sends them to an OpenTelemetry
// collector.
//
// The front door begins a trace (Tracer.Begin); everything else continues the trace of
// its context (Start) or of its caller (ServerOption, DialOption), or records nothing.
// A request that is not sampled costs no allocation: nothing here is called for it but
// a look at its context.
//
// It decides what is sampled and what is dropped. A collector that is slow or away
// delays nothing: spans wait in a queue of fixed size, and those that find it full are
// dropped and counted.
package tracing
