#!/bin/sh
# Gathers what the program needs to run, and nothing else, into a folder: node, the shared libraries it and the native
# packages load, the system's CA certificates, our bundle, the page and the packages. Usage: rootfs.sh APP FOLDER
# With LINK=yes the files are the same ones by further names, where one file system has both: for folders that nobody writes to.
set -eu
app=$1
out=$2
node=$(command -v node)

put() {
  mkdir -p "$out$(dirname "$2")"
  if [ "${LINK:-}" = yes ] && cp -RLl "$1" "$out$2" 2>/dev/null; then return; fi
  rm -rf "$out$2"
  cp -RL "$1" "$out$2"
}

put "$node" /usr/local/bin/node
{
  ldd "$node"
  find "$app/node_modules" -name '*.node' -path '*linux*' ! -path '*musl*' -exec ldd {} \; 2>/dev/null
} | grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do put "$library" "$library"; done
# Name resolution is loaded by name at run time, which ldd does not see.
for library in /lib/*-linux-gnu/libnss_dns.so.2 /lib/*-linux-gnu/libnss_files.so.2 /lib/*-linux-gnu/libresolv.so.2; do
  if [ -e "$library" ]; then put "$library" "$library"; fi
done
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then put /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt; fi

for part in bin dist node_modules package.json LICENSE; do put "$app/$part" "/app/$part"; done
# The page is built: what it was built from is not needed again.
for package in @clusterpulse .cache @tabler react react-dom scheduler uplot; do rm -rf "$out/app/node_modules/$package"; done
mkdir -p "$out/data" "$out/tmp" "$out/etc"
printf 'nonroot:x:65532:65532:nonroot:/data:/sbin/nologin\n' > "$out/etc/passwd"
printf 'nonroot:x:65532:\n' > "$out/etc/group"
printf 'hosts: files dns\n' > "$out/etc/nsswitch.conf"
# Writable for whoever runs it: OpenShift and `docker run --user` choose another user than ours. A volume takes this over.
chown 65532:65532 "$out/data"
chmod 1777 "$out/data"
chmod 1777 "$out/tmp"
