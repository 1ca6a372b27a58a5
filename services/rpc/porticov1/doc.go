// Package porticov1 is the generated code of portico.proto: the messages and
// services that carry the contracts. Package rpc is its only user and says what
// the messages mean; nothing here is written by hand but the proto file.
package porticov1
