import { createHmac, X509Certificate } from 'node:crypto'
import { issueServerCertificate, newAuthorityPair, newKeyPair, type PairText, readAuthorityPair } from '#authority'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey, secrets, whole } from '#kube'

const secret = whole(secrets)
const DAY_MS = 86_400_000
const CERTIFICATE_LIFE_MS = 90 * DAY_MS
const RENEW_BEFORE_MS = 30 * DAY_MS
const AUTHORITY_LIFE_MS = 3650 * DAY_MS
/** A new CA is trusted for long before a certificate of it is shown. */
const REPLACE_AUTHORITY_BEFORE_MS = 365 * DAY_MS
const BACKDATE_MS = 3_600_000
const ATTEMPTS = 5

/** What a server shows, and the CAs by which whoever asks it knows it. All PEM. */
export interface ServingPair {
  readonly cert: string
  readonly key: string
  /** one behind the other; the first signs */
  readonly ca: string
  /** what only those know who may read the Secret, and whom they tell: 40 hexadecimal digits, as long as the CA signs */
  readonly word: string
}

interface Kept extends Omit<ServingPair, 'word'> {
  readonly authorityKey: string
}

export interface ServingCertificateOptions {
  readonly hub: KubeClient
  /** of the Secret */
  readonly key: Required<ObjectKey>
  /** names and addresses of the server */
  readonly hosts: readonly string[]
  /** ms since the Unix epoch */
  readonly nowMs: number
  readonly signal: AbortSignal
}

/**
 * The certificate of a server that several processes run, in a Secret: made where there is none or it cannot be used, and renewed by
 * whichever process first finds it due. All of them read the same.
 * @throws KubeError where the Secret can be neither read nor written
 */
export async function servingCertificate(options: ServingCertificateOptions): Promise<ServingPair> {
  const { hub, key, hosts, nowMs, signal } = options
  for (let attempt = 1; ; attempt++) {
    const stored = await hub.get(secret, key, signal)
    const kept = stored && keptIn(stored)
    const next = await renewed(kept, hosts, nowMs)
    if (next === kept) return withWord(next)
    try {
      await write(hub, key, next, { stored, signal })
      return withWord(next)
    } catch (error) {
      const raced = (['conflict', 'already_exists', 'not_found'] as const).some((reason) => isKubeError(error, reason))
      if (!raced || attempt >= ATTEMPTS) throw error
    }
  }
}

const withWord = ({ authorityKey, ...pair }: Kept): ServingPair => ({
  ...pair,
  word: createHmac('sha256', authorityKey).update('who asks').digest('hex').slice(0, 40),
})

/** The same where nothing is due. A new CA begins to be trusted first; what it signs comes with the next certificate. */
async function renewed(kept: Kept | undefined, hosts: readonly string[], nowMs: number): Promise<Kept> {
  if (!kept) return issued(await newAuthority(nowMs), '', hosts, nowMs)
  const roots = certificatesIn(kept.ca)
  const [signing] = roots
  const leaf = new X509Certificate(kept.cert)
  const isAuthorityDue = !signing || endOf(signing) < nowMs + REPLACE_AUTHORITY_BEFORE_MS
  if (isAuthorityDue) {
    const made = await newAuthority(nowMs)
    const former = roots.filter((root) => endOf(root) > nowMs).map(String)
    return { ...kept, authorityKey: made.key, ca: [made.cert, ...former].join('') }
  }
  const isDue = endOf(leaf) < nowMs + RENEW_BEFORE_MS || !hosts.every((host) => isFor(leaf, host))
  if (!isDue) return kept
  const former = roots.slice(1).filter((root) => endOf(root) > nowMs)
  return issued({ cert: String(signing), key: kept.authorityKey }, former.map(String).join(''), hosts, nowMs)
}

const newAuthority = (nowMs: number): Promise<PairText> =>
  newAuthorityPair('clusterpulse-webhooks', nowMs, AUTHORITY_LIFE_MS)

async function issued(authority: PairText, former: string, hosts: readonly string[], nowMs: number): Promise<Kept> {
  const { keys, pem: key } = await newKeyPair()
  const { pem: cert } = await issueServerCertificate(await readAuthorityPair(authority), {
    ...{ commonName: 'clusterpulse-webhooks', hosts, publicKey: keys.publicKey },
    ...{ notBeforeMs: nowMs - BACKDATE_MS, notAfterMs: nowMs + CERTIFICATE_LIFE_MS },
  })
  return { cert, key, authorityKey: authority.key, ca: `${authority.cert.trimEnd()}\n${former}` }
}

const endOf = ({ validTo }: X509Certificate): number => Date.parse(validTo)
const isFor = (leaf: X509Certificate, host: string): boolean =>
  leaf.checkHost(host) !== undefined || leaf.checkIP(host) !== undefined

const certificatesIn = (pem: string): X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []).map((one) => new X509Certificate(one))

const FIELDS = { cert: 'tls.crt', key: 'tls.key', ca: 'ca.crt', authorityKey: 'ca.key' } as const

/** undefined: it holds nothing yet, or not what belongs together */
function keptIn({ data }: KubeObject): Kept | undefined {
  const text = (field: keyof typeof FIELDS): string =>
    Buffer.from((data as Readonly<Record<string, string>> | undefined)?.[FIELDS[field]] ?? '', 'base64').toString()
  const kept = { cert: text('cert'), key: text('key'), ca: text('ca'), authorityKey: text('authorityKey') }
  try {
    const leaf = new X509Certificate(kept.cert)
    const isKnown = certificatesIn(kept.ca).some((root) => leaf.checkIssued(root) && leaf.verify(root.publicKey))
    return isKnown && kept.key !== '' && kept.authorityKey !== '' ? kept : undefined
  } catch {
    return undefined // no certificates: they are made anew
  }
}

async function write(
  hub: KubeClient,
  key: Required<ObjectKey>,
  kept: Kept,
  { stored, signal }: { readonly stored: KubeObject | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(FIELDS).map(([field, name]) => [
      name,
      Buffer.from(kept[field as keyof typeof FIELDS]).toString('base64'),
    ]),
  )
  const head = { apiVersion: 'v1', kind: 'Secret' }
  if (stored) await hub.replace(secret, { ...stored, ...head, data }, signal)
  else await hub.create(secret, { ...head, metadata: key, type: 'Opaque', data }, signal)
}
