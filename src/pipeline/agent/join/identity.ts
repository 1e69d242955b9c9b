import { createPrivateKey, X509Certificate } from 'node:crypto'
import { FleetError } from '#model'

/** Where the hub is, and how it is known. */
export interface HubEnds {
  /** host:port, in the order they are tried */
  readonly addresses: readonly string[]
  /** SHA-256 of a CA in the chain it shows, hex, until its authorities are known */
  readonly caFingerprint?: string
  readonly serverName?: string
}

/** A request that is on its way: kept before it is sent, so that the same one is sent again. */
export interface Asking {
  readonly hub: HubEnds
  /** PEM of the authorities the hub is known by; '': by fingerprint, or those of the system */
  readonly roots: string
  readonly cluster: string
  readonly agent: string
  /** private, PEM */
  readonly key: string
  /** DER in base64 */
  readonly request: string
  /** secret of the join token; '': a renewal */
  readonly token: string
}

/** A member: certificate and key in one file, so that one is never without the other. */
export interface MemberIdentity {
  readonly hub: HubEnds
  /** PEM of the authorities the hub is known by; '': those of the system */
  readonly roots: string
  readonly cluster: string
  readonly agent: string
  readonly key: string
  /** PEM */
  readonly certificate: string
  /** SHA-256 of the secret of the join token, hex: another token means to join anew */
  readonly joinedBy: string
}

/** A file of an identity cannot be used as it is. */
export class IdentityError extends FleetError {
  override readonly name = 'IdentityError'
  readonly code = 'identity_unusable'
  readonly retryable = false
}

/** What an agent keeps of its membership: two records, each old or new as a whole, wherever they are kept. */
export interface IdentityStore {
  /** where that is, for people */
  readonly place: string
  /** @throws IdentityError where it is damaged */
  member(): Promise<MemberIdentity | undefined>
  /** @throws IdentityError where it is damaged */
  asking(): Promise<Asking | undefined>
  ask(asking: Asking): Promise<void>
  /** From now on a member by this certificate; what was asked is answered. */
  join(identity: MemberIdentity): Promise<void>
  /** The same member, with what has changed. */
  keep(identity: MemberIdentity): Promise<void>
  /** What was asked is not asked any more. */
  forget(): Promise<void>
}

/** @param from where the record is, for people. @throws IdentityError */
export function memberIn(content: string, from: string): MemberIdentity {
  const fields = fieldsIn(content, from)
  const identity = { ...common(fields), certificate: text(fields, 'certificate'), joinedBy: text(fields, 'joinedBy') }
  if (!isPair(identity)) throw damaged(from, 'its certificate is not that of its key')
  return identity
}

/** @param from where the record is, for people. @throws IdentityError */
export function askingIn(content: string, from: string): Asking {
  const fields = fieldsIn(content, from)
  return { ...common(fields), request: text(fields, 'request'), token: text(fields, 'token') }
}

function fieldsIn(content: string, from: string): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(content)
    if (typeof fields === 'object' && fields !== null && 'key' in fields) {
      createPrivateKey(String(fields.key))
      return { ...fields }
    }
  } catch (cause) {
    throw damaged(from, 'it cannot be read', cause)
  }
  throw damaged(from, 'it holds no key')
}

const damaged = (from: string, why: string, cause?: unknown): IdentityError =>
  new IdentityError(
    `${from} is damaged: ${why}; move it away and join anew with a new token (\`clusterpulse connect NAME\` on the hub)`,
    { cause },
  )

function common(fields: Readonly<Record<string, unknown>>) {
  const { addresses, caFingerprint, serverName } = (fields.hub ?? {}) as Readonly<Record<string, unknown>>
  return {
    hub: {
      addresses: Array.isArray(addresses) ? addresses.filter((one) => typeof one === 'string') : [],
      ...(typeof caFingerprint === 'string' && { caFingerprint }),
      ...(typeof serverName === 'string' && { serverName }),
    },
    roots: text(fields, 'roots'),
    cluster: text(fields, 'cluster'),
    agent: text(fields, 'agent'),
    key: text(fields, 'key'),
  }
}

const text = (fields: Readonly<Record<string, unknown>>, name: string): string =>
  typeof fields[name] === 'string' ? fields[name] : ''

/** Whether a certificate is for this private key. */
export function isPair({ key, certificate }: Pick<MemberIdentity, 'key' | 'certificate'>): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
