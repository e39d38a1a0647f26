#!/bin/sh
# Makes what the services of compose.yaml share, once, in the folder of the first argument. What is there already stays.
set -eu
settings=$(cd "$(dirname "$0")" && pwd)
cd "$1"
[ -e done ] && exit 0

# An authority of its own, and one certificate for the service and the issuer, which share an address.
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=gangway compose" -keyout ca.key -out ca.crt
openssl req -x509 -CA ca.crt -CAkey ca.key -newkey rsa:2048 -nodes -days 365 -subj "/CN=gangway" \
  -addext "basicConstraints=critical,CA:FALSE" -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" \
  -keyout server.key -out server.crt

# The key that encrypts kubeconfigs.
printf 'current: first\nkeys:\n  - {name: first, key: "%s"}\n' "$(openssl rand -base64 32)" > keys.yaml

# The password of the first admin. The issuer gets its hash alone.
openssl rand -hex 16 > admin.password
hash=$(htpasswd -inBC 10 admin < admin.password | cut -d : -f 2)
sed "s|ADMIN_PASSWORD_HASH|$hash|" "$settings/dex.yaml" > dex.yaml

# The services run as users of their own, and nothing else mounts this folder.
chmod 644 server.key keys.yaml dex.yaml
chmod 600 ca.key admin.password
touch done
