#!/bin/sh
# Fetches mini-redis 0.4.1 from crates.io into a folder, has its tasks and its mutex told, and builds its server: a tokio program that was not
# written for tracewing, to record under a load generator such as redis-benchmark.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
tracewing=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/fetch/src"
cd "$1"

# Cargo fetches it as a dependency of a package of nothing else.
cat > fetch/Cargo.toml <<END
[package]
name = "fetch"
version = "0.1.0"
edition = "2024"
[workspace]
[dependencies]
mini-redis = "=0.4.1"
END
: > fetch/src/lib.rs
manifest=$(cargo metadata --format-version 1 --manifest-path fetch/Cargo.toml |
    sed 's/.*"manifest_path":"\([^"]*mini-redis-0\.4\.1\/Cargo\.toml\)".*/\1/')
rm -rf mini-redis
cp -r "$(dirname "$manifest")" mini-redis
cd mini-redis

# The whole change: two calls and an import, and where they lead.
sed -i 's/tokio::spawn(/tracewing_tokio::spawn(/' src/server.rs src/db.rs
sed -i 's/^use std::sync::{Arc, Mutex};/use std::sync::Arc;\nuse tracewing::sync::Mutex;/' src/db.rs
cat >> Cargo.toml <<END

[dependencies.tracewing-tokio]
path = "$tracewing/crates/tokio"

[dependencies.tracewing]
path = "$tracewing/crates/tracewing"

[workspace]
END
rm -f Cargo.lock

cargo build --release --bin mini-redis-server
echo "built $1/mini-redis/target/release/mini-redis-server"
