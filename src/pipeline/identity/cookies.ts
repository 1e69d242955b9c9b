import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'

/** The most a browser keeps in one cookie is 4096 bytes with its name; the rest of ours is split over several. */
const pieceLength = 3800
const maxPieces = 3

export interface CookieJar {
  /** the value, joined from its pieces; undefined: absent, incomplete, or given twice */
  read(request: IncomingMessage, name: string, path?: string): string | undefined
  /** names of ours that begin so */
  names(request: IncomingMessage, prefix: string): readonly string[]
  /** @returns undefined where it is too large to be kept */
  write(
    request: IncomingMessage | undefined,
    name: string,
    value: string,
    options: CookieOptions,
  ): readonly string[] | undefined
  clear(request: IncomingMessage | undefined, name: string, options?: Pick<CookieOptions, 'path'>): readonly string[]
}

export interface CookieOptions {
  readonly maxAgeMs: number
  /** default / */
  readonly path?: string
  /** all in one cookie; default: as many as it takes */
  readonly single?: boolean
}

/**
 * Cookies as people's browsers keep them. Over https their names begin with `__Host-` (or `__Secure-` with a path), so that
 * no neighbouring domain and no plain connection can set them for us.
 */
export function cookieJar(publicUrl: string | undefined): CookieJar {
  const isSecure = (request: IncomingMessage | undefined): boolean =>
    publicUrl === undefined ? request?.socket instanceof TLSSocket : new URL(publicUrl).protocol === 'https:'
  const fullName = (request: IncomingMessage | undefined, name: string, path = '/'): string =>
    isSecure(request) ? `${path === '/' ? '__Host-' : '__Secure-'}clusterpulse-${name}` : `clusterpulse-${name}`
  const line = (
    request: IncomingMessage | undefined,
    name: string,
    value: string,
    path: string,
    seconds: number,
  ): string =>
    `${name}=${value}; Path=${path}; HttpOnly; SameSite=Lax; Max-Age=${seconds}${isSecure(request) ? '; Secure' : ''}`
  const piece = (name: string, index: number): string => (index === 0 ? name : `${name}.${index}`)

  return {
    read(request, name, path) {
      const given = cookiesOf(request)
      const full = fullName(request, name, path)
      const first = /^([1-3])\.(.*)$/.exec(given.get(full) ?? '')
      if (!first) return undefined
      const pieces = [first[2]]
      for (let index = 1; index < Number(first[1]); index++) pieces.push(given.get(piece(full, index)))
      return pieces.includes(undefined) ? undefined : pieces.join('')
    },
    names(request, prefix) {
      const full = fullName(request, prefix)
      const own = full.length - prefix.length
      return [...cookiesOf(request).keys()].filter((name) => name.startsWith(full)).map((name) => name.slice(own))
    },
    write(request, name, value, { maxAgeMs, path = '/', single = false }) {
      const count = Math.max(1, Math.ceil(value.length / pieceLength))
      if (count > (single ? 1 : maxPieces)) return undefined
      const full = fullName(request, name, path)
      return Array.from({ length: count }, (_, index) => {
        const part = value.slice(index * pieceLength, (index + 1) * pieceLength)
        const text = index === 0 ? `${count}.${part}` : part
        return line(request, piece(full, index), text, path, Math.ceil(maxAgeMs / 1000))
      })
    },
    clear(request, name, { path = '/' } = {}) {
      const full = fullName(request, name, path)
      const given = request ? cookiesOf(request) : undefined
      const indexes = Array.from({ length: maxPieces }, (_, index) => index)
      return indexes
        .filter((index) => index === 0 || given?.has(piece(full, index)))
        .map((index) => line(request, piece(full, index), '', path, 0))
    },
  }
}

/** By name; undefined for one that was given twice: which is ours cannot be told. */
function cookiesOf(request: IncomingMessage): ReadonlyMap<string, string | undefined> {
  const cookies = new Map<string, string | undefined>()
  const { rawHeaders } = request
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'cookie') continue
    for (const pair of (rawHeaders[index + 1] ?? '').split(';')) {
      const at = pair.indexOf('=')
      const name = pair.slice(0, at).trim()
      if (at > 0) cookies.set(name, cookies.has(name) ? undefined : pair.slice(at + 1).trim())
    }
  }
  return cookies
}
