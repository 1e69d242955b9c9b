import { createHash } from 'node:crypto'

/** The most a token may weigh, bytes: proxies and servers cut headers near this size anyway. */
export const maxTokenBytes = 16 * 1024

const hash = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** Names a token in caches without holding it. */
export const tokenKey = (token: string): string => hash(token)

/**
 * Names a token in the store of sign-outs. Of a signed token only what is signed counts: some signatures can be rewritten
 * into others as good, and the copy must not outlive the sign-out.
 */
export function tokenId(token: string): string {
  const parts = token.split('.')
  return `token:${hash(parts.length === 3 ? parts.slice(0, 2).join('.') : token)}`
}

/** What a token says of itself, believed by nobody yet. */
export interface TokenParts {
  readonly header: Uint8Array
  readonly payload: Uint8Array
}

const base64url = /^[A-Za-z0-9_-]+$/

/** undefined: not of the form header.payload.signature */
export function tokenParts(token: string): TokenParts | undefined {
  const parts = token.split('.')
  if (parts.length !== 3 || !parts.every((part) => base64url.test(part))) return undefined
  const [header = '', payload = ''] = parts
  return { header: Buffer.from(header, 'base64url'), payload: Buffer.from(payload, 'base64url') }
}
