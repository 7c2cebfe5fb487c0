# dvim in a container: one static program, no shell, no network needed.
#   docker build -t dvim . && docker run --rm --network none --user "$(id -u)" -v "$PWD:/data" -w /data dvim fit ...
FROM rust:1-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --release --locked -p dvim-cli

FROM scratch
COPY --from=build /source/target/release/dvim /dvim
COPY LICENSE-MIT LICENSE-APACHE /
WORKDIR /data
ENTRYPOINT ["/dvim"]
