#!/bin/sh
# Generates porticov1 from portico.proto, with the plugin versions below. Needs
# protoc; without it the committed code stays as it is.
set -eu
cd "$(dirname "$0")/porticov1"
if ! command -v protoc >/dev/null; then
	echo "gen: protoc is not installed (package protobuf-compiler): keeping the committed services/rpc/porticov1" >&2
	exit 0
fi
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
PATH=$bin:$PATH protoc --go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative portico.proto
# The comment with protoc's own version would differ from machine to machine.
sed -i.bak -e '/^\/\/ [-[:space:]]*protoc  */d' ./*.pb.go
rm -f ./*.bak
