import { type ClusterName, FleetError, isClusterName } from '#model'

/** What a machine needs in order to ask a hub for membership: printed by `connect`, given to `join`. */
export interface JoinText {
  readonly cluster: ClusterName
  /** 256 random bits in base64url, spent by one key; the hub keeps its hash */
  readonly secret: string
  /** host:port, each of the same hub, in the order they are tried */
  readonly addresses: readonly string[]
  /** by which the hub is known: SHA-256 of a CA in the chain it shows, hex, or that CA as PEM; neither: the roots of the system */
  readonly caFingerprint?: string
  readonly caPem?: string
  /** name to verify instead of the dialled one */
  readonly serverName?: string
}

/** What was given is no join token, or not all of one. */
export class JoinTextError extends FleetError {
  override readonly name = 'JoinTextError'
  readonly code = 'join_token_unreadable'
  readonly retryable = false

  constructor(why: string) {
    super(`this is no join token: ${why}; \`clusterpulse connect NAME\` on the hub prints one, to be copied whole`)
  }
}

const PREFIX = 'cpj1_'
const SECRET = /^[A-Za-z0-9_-]{43}$/
const ADDRESS = /^[^\s/@]{1,255}:\d{1,5}$/
const FINGERPRINT = /^[0-9a-f]{64}$/
const MAX_TEXT = 32_768
/** Of one hub: so many are kept and tried. */
export const MAX_HUB_ADDRESSES = 8

/** One word without anything a shell takes for its own. */
export function encodeJoinText({ cluster, secret, addresses, caFingerprint, caPem, serverName }: JoinText): string {
  const fields = { c: cluster, s: secret, a: addresses, f: caFingerprint, p: caPem, n: serverName }
  return `${PREFIX}${toBase64url(JSON.stringify(fields))}`
}

/** @throws JoinTextError saying what is wrong, never what it holds */
export function decodeJoinText(given: string): JoinText {
  const text = given.trim()
  if (!text.startsWith(PREFIX)) throw new JoinTextError(`it does not begin with ${PREFIX}`)
  if (text.length > MAX_TEXT) throw new JoinTextError('it is too long')
  const fields = fieldsOf(text.slice(PREFIX.length))
  const { c: cluster, s: secret, a: addresses, f: caFingerprint, p: caPem, n: serverName } = fields
  if (typeof cluster !== 'string' || !isClusterName(cluster)) throw new JoinTextError('it names no cluster')
  if (typeof secret !== 'string' || !SECRET.test(secret)) throw new JoinTextError('its secret is not whole')
  if (!areHubAddresses(addresses)) throw new JoinTextError('it does not say where the hub is')
  if (caFingerprint !== undefined && !(typeof caFingerprint === 'string' && FINGERPRINT.test(caFingerprint)))
    throw new JoinTextError('the fingerprint of the CA in it is none')
  if (caPem !== undefined && !(typeof caPem === 'string' && caPem.includes('BEGIN CERTIFICATE')))
    throw new JoinTextError('the CA in it is none')
  if (serverName !== undefined && typeof serverName !== 'string') throw new JoinTextError('its server name is none')
  return {
    cluster,
    secret,
    addresses,
    ...(caFingerprint !== undefined && { caFingerprint }),
    ...(caPem !== undefined && { caPem }),
    ...(serverName !== undefined && { serverName }),
  }
}

/** Whether these are addresses of one hub, as a token names them and as the hub tells its members. */
export const areHubAddresses = (value: unknown): value is readonly string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= MAX_HUB_ADDRESSES &&
  value.every((one) => typeof one === 'string' && ADDRESS.test(one))

function fieldsOf(encoded: string): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(fromBase64url(encoded))
    if (typeof fields === 'object' && fields !== null) return { ...fields }
  } catch {
    // told below: a part of it is missing, or it was changed
  }
  throw new JoinTextError('it is not whole')
}

function toBase64url(text: string): string {
  const bytes = new TextEncoder().encode(text)
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  return base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function fromBase64url(encoded: string): string {
  const bytes = Uint8Array.from(atob(encoded.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0))
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}
