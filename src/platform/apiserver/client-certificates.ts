import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { AUTHENTICATED, type User } from './user.ts'

interface Holder {
  readonly user: User
  readonly endsMs: number
}

/** A certificate does not change while its connection lives; what it says is read once. */
const holders = new WeakMap<Socket, Holder | null>()

/**
 * Whom a verified client certificate names: the common name is the user, the organisations are the groups. It counts until it ends, on
 * connections that are open as well.
 * @returns undefined without a certificate, and for one that no listed CA signed, that is no client's, or that names nobody or two
 */
export function certificateUser({ socket }: IncomingMessage, nowMs: number): User | undefined {
  let holder = holders.get(socket)
  if (holder === undefined) {
    holder = socket instanceof TLSSocket && socket.authorized ? read(socket) : null
    holders.set(socket, holder)
  }
  return holder && nowMs < holder.endsMs ? holder.user : undefined
}

function read(socket: TLSSocket): Holder | null {
  const { subject, valid_to, fingerprint256 } = socket.getPeerCertificate()
  // Node's types know one value of each kind; a subject may hold several.
  const { CN: name, O: groups = [] } = (subject ?? {}) as { CN?: string | string[]; O?: string | string[] }
  if (typeof name !== 'string' || name === '') return null
  const digest = fingerprint256.replaceAll(':', '').toLowerCase()
  const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${digest}`] }
  return { user: { name, groups: [...[groups].flat(), AUTHENTICATED], extra }, endsMs: Date.parse(valid_to) }
}
