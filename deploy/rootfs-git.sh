#!/bin/sh
# Adds what sinks of type git need to a folder that rootfs.sh filled: git with its transports, ssh, the shell that git runs
# helpers with, and the shared libraries of all of them. Usage: rootfs-git.sh FOLDER
set -eu
out=$1

put() { mkdir -p "$out$(dirname "$2")" && cp -RL "$1" "$out$2"; }

core=$(git --exec-path)
for program in /bin/sh /usr/bin/git /usr/bin/ssh "$core/git-remote-http" "$core/git-remote-https"; do
  put "$program" "$program"
  ldd "$program"
done | grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do put "$library" "$library"; done
