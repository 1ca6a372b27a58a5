// Package porticov1 is the generated code of portico.proto: the messages and gRPC services
// of the contracts. Package rpc converts the messages. Only the proto file is written by
// hand.
package porticov1
