import type { ServerResponse } from 'node:http'

const CHUNK = Symbol('chunk')

/** It is at hand where the bytes are: a map of such pieces costs more than what is written of small ones. */
interface Piece extends Buffer {
  [CHUNK]?: Buffer
}

/** A chunk of a body (RFC 9112, 7.1), made once however many bodies it is part of. */
function chunkOf(bytes: Piece): Buffer {
  bytes[CHUNK] ??= Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  return bytes[CHUNK]
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
