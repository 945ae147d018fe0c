#!/bin/sh
# Makes all secrets of a cluster in this folder: make-secrets.sh PUBLIC_NAME [NAMESPACE]. What is there already stays.
#
# It needs the command `seatwise`, from `pip install '.[server]'` in a clone or from the image:
#   SEATWISE="docker run --rm --user $(id -u) --volume $PWD:$PWD --workdir $PWD --entrypoint seatwise seatwise" ./make-secrets.sh ...
set -eu
umask 077
cd "$(dirname "$0")"
name=${1:?"which name do bots use? make-secrets.sh PUBLIC_NAME [NAMESPACE]"}
case $name in localhost*|127.*) echo "bots outside this machine do not find $name" >&2; exit 2;; esac
space=${2:-seatwise}
seatwise=${SEATWISE:-seatwise}
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

[ -s admin.token ] || random > admin.token
if [ ! -s url ]; then
  password=$(random)
  printf 'rediss://:%s@seatwise-redis.%s.svc.cluster.local:6379?ssl_ca_certs=/etc/seatwise/tls/ca.crt' "$password" "$space" > url
  cat > redis.conf <<CONF
requirepass $password
port 0
tls-port 6379
tls-cert-file /etc/seatwise/tls/tls.crt
tls-key-file /etc/seatwise/tls/tls.key
tls-ca-cert-file /etc/seatwise/tls/ca.crt
tls-auth-clients no
dir /data
appendonly yes
appendfsync always
maxmemory-policy noeviction
CONF
fi
[ -e redis.conf ] || : > redis.conf # a Redis of your own
$seatwise ctl certificates --ca ca --into . seatwise.internal localhost "seatwise-lobby.$space.svc.cluster.local" \
  "seatwise-redis.$space.svc.cluster.local" "*.seatwise-referee.$space.svc.cluster.local" > /dev/null
mkdir -p door
$seatwise ctl certificates --ca ca --into door "$name"
cp door/tls.crt door.crt
cp door/tls.key door.key
