import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { issueServerCertificate, newAuthorityPair, newKeyPair, type PairText, readAuthorityPair } from '#authority'
import { type Logger, replaceFile, silentLogger } from '#runtime'
import { isSealed, type Sealer, UnknownKeyError } from '#sealing'

/** What a TLS listener shows, and what its clients check it by. All PEM. */
export interface ServingCertificate {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

const DAY_MS = 86_400_000
const CA_FILES = { cert: 'ca.crt', key: 'ca.key' }
const KEY_PLACE = { kind: 'CertificateAuthority', name: 'clusterpulse-api-ca' }

const newAuthority = (nowMs: number): Promise<PairText> => newAuthorityPair('clusterpulse-api-ca', nowMs, 3650 * DAY_MS)

/**
 * What two files hold, where they are whole and belong together. A key in the clear, or under a former key, is sealed anew.
 * @throws where not, saying why
 */
async function readAuthority(
  certPath: string,
  keyPath: string,
  sealer: Sealer | undefined,
): Promise<PairText & { readonly endsMs: number }> {
  const kept = readFileSync(keyPath)
  const key = sealer && isSealed(kept) ? await sealer.open(kept, KEY_PLACE) : kept
  const pair = { cert: readFileSync(certPath, 'utf8'), key: key.toString() }
  const { certificate } = await readAuthorityPair(pair)
  if (sealer && !sealer.isCurrent(kept)) await replaceFile(keyPath, await sealer.seal(key, KEY_PLACE))
  return { ...pair, endsMs: certificate.notAfter.getTime() }
}

/** A file that is there and may not be read, now or by this user: nothing is known of what it holds. */
const isOfSystem = (error: unknown): boolean => {
  const { code } = error as NodeJS.ErrnoException
  return error instanceof Error && 'syscall' in error && code !== 'ENOENT'
}

/** The CA kept in a directory, or a new one that is kept there from now on; one that replaces another is said in the log. */
async function keptAuthority(
  dir: string,
  sealer: Sealer | undefined,
  { nowMs, logger }: { readonly nowMs: number; readonly logger: Logger },
): Promise<PairText> {
  const certPath = join(dir, CA_FILES.cert)
  const keyPath = join(dir, CA_FILES.key)
  const means = 'who trusts the former one (kubeconfigs, agents that were handed it) must be given the new one'
  if (existsSync(certPath) || existsSync(keyPath)) {
    try {
      const kept = await readAuthority(certPath, keyPath, sealer)
      if (kept.endsMs > nowMs + 30 * DAY_MS) return kept
      logger.warn({ dir }, `a new CA is made, because the kept one ends within 30 days: ${means}`)
    } catch (error) {
      // Whole, and a key away: replacing it would cut off who trusts it.
      if (error instanceof UnknownKeyError || isOfSystem(error)) throw error
      const reason = error instanceof Error ? error.message : String(error)
      for (const path of [certPath, keyPath]) if (existsSync(path)) renameSync(path, `${path}.damaged`)
      logger.error(
        { dir, reason },
        `a new CA is made, because the kept one cannot be used (put aside as *.damaged): ${means}`,
      )
    }
  }
  const made = await newAuthority(nowMs)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  // The key first: a certificate without its key would be taken for a whole pair.
  const key = Buffer.from(made.key)
  await replaceFile(keyPath, sealer ? await sealer.seal(key, KEY_PLACE) : key)
  await replaceFile(certPath, made.cert)
  return made
}

/**
 * A certificate for the names and addresses given, from a CA of our own. With a directory the CA stays the same over
 * restarts (files of mode 0600), so kubeconfigs stay valid; the serving certificate is new each time, for one year.
 */
export async function generateServingCertificate(options: {
  readonly hosts: readonly string[]
  readonly dir?: string | undefined
  /** seals the CA's key in that directory */
  readonly sealer?: Sealer | undefined
  readonly nowMs?: number
  readonly logger?: Logger
}): Promise<ServingCertificate> {
  const nowMs = options.nowMs ?? Date.now()
  const authority = options.dir
    ? await keptAuthority(options.dir, options.sealer, { nowMs, logger: options.logger ?? silentLogger })
    : await newAuthority(nowMs)
  const { keys, pem: key } = await newKeyPair()
  const { pem: cert } = await issueServerCertificate(await readAuthorityPair(authority), {
    commonName: 'clusterpulse-api',
    hosts: options.hosts,
    publicKey: keys.publicKey,
    notBeforeMs: nowMs - DAY_MS,
    notAfterMs: nowMs + 365 * DAY_MS,
  })
  return { cert, key, ca: new X509Certificate(authority.cert).toString() }
}
