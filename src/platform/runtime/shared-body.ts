import type { ServerResponse } from 'node:http'

const chunks = new WeakMap<Buffer, Buffer>()

/** A chunk of a body (RFC 9112, 7.1), made once however many bodies it is part of. */
function chunkOf(bytes: Buffer): Buffer {
  const known = chunks.get(bytes)
  if (known) return known
  const made = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  chunks.set(bytes, made)
  return made
}

/**
 * Writes a piece of a body that goes to thousands of readers. It goes to the socket as it is: a response would write each chunk anew,
 * in four parts. HTTP/1.0, which proxies speak, knows no chunks.
 * @param response its head was sent (`flushHeaders`), and it answers no HEAD
 */
export function writeShared(response: ServerResponse, bytes: Buffer): void {
  const { socket, chunkedEncoding } = response
  if (bytes.length === 0) return
  // It has no socket until the answer before it on the same connection is over.
  if (!socket) response.write(bytes)
  else if (socket.writable) socket.write(chunkedEncoding ? chunkOf(bytes) : bytes)
}
