import 'reflect-metadata'
import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  X509Certificate as ReadCertificate,
  webcrypto,
} from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { type Logger, replaceFile, silentLogger } from '#runtime'
import { isSealed, type Sealer, UnknownKeyError } from '#sealing'

/** What a TLS listener shows, and what its clients check it by. All PEM. */
export interface ServingCertificate {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

const DAY_MS = 86_400_000
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const CA_FILES = { cert: 'ca.crt', key: 'ca.key' }
const KEY_PLACE = { kind: 'CertificateAuthority', name: 'clusterpulse-api-ca' }

const crypto = webcrypto
const serial = (): string => `01${Buffer.from(webcrypto.getRandomValues(new Uint8Array(15))).toString('hex')}`

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${pkcs8.replace(/(.{64})/g, '$1\n').trimEnd()}\n-----END PRIVATE KEY-----\n`
}

interface Authority {
  readonly certificate: X509Certificate
  readonly key: webcrypto.CryptoKey
}

async function newAuthority(nowMs: number): Promise<Authority & { readonly keyPem: string }> {
  const keys = await newKeys()
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serial(),
      name: 'CN=clusterpulse-api-ca',
      notBefore: new Date(nowMs - DAY_MS),
      notAfter: new Date(nowMs + 3650 * DAY_MS),
      signingAlgorithm: ALGORITHM,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ],
    },
    crypto,
  )
  return { certificate, key: keys.privateKey, keyPem: await pemOf(keys.privateKey) }
}

/**
 * What two files hold, where they are whole and belong together. A key in the clear, or under a former key, is sealed anew.
 * @throws where not, saying why
 */
async function readAuthority(certPath: string, keyPath: string, sealer: Sealer | undefined): Promise<Authority> {
  const text = readFileSync(certPath, 'utf8')
  const kept = readFileSync(keyPath)
  const pem = sealer && isSealed(kept) ? await sealer.open(kept, KEY_PLACE) : kept
  const stored: KeyObject = createPrivateKey(pem)
  const read = new ReadCertificate(text)
  // An altered certificate may still be read: its own signature tells.
  if (!read.verify(createPublicKey(stored))) throw new Error('certificate and key do not belong together')
  if (sealer && !sealer.isCurrent(kept)) await replaceFile(keyPath, await sealer.seal(pem, KEY_PLACE))
  const key = await crypto.subtle.importKey(
    'pkcs8',
    stored.export({ type: 'pkcs8', format: 'der' }),
    ALGORITHM,
    false,
    ['sign'],
  )
  return { certificate: new X509Certificate(text), key }
}

/** The CA kept in a directory, or a new one that is kept there from now on; one that replaces another is said in the log. */
async function keptAuthority(
  dir: string,
  sealer: Sealer | undefined,
  { nowMs, logger }: { readonly nowMs: number; readonly logger: Logger },
): Promise<Authority> {
  const certPath = join(dir, CA_FILES.cert)
  const keyPath = join(dir, CA_FILES.key)
  const means = 'who trusts the former one (kubeconfigs, agents that were handed it) must be given the new one'
  if (existsSync(certPath) || existsSync(keyPath)) {
    try {
      const kept = await readAuthority(certPath, keyPath, sealer)
      if (kept.certificate.notAfter.getTime() > nowMs + 30 * DAY_MS) return kept
      logger.warn({ dir }, `a new CA is made, because the kept one ends within 30 days: ${means}`)
    } catch (error) {
      // Whole, and a key away: replacing it would cut off who trusts it.
      if (error instanceof UnknownKeyError) throw error
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
  const key = Buffer.from(made.keyPem)
  await replaceFile(keyPath, sealer ? await sealer.seal(key, KEY_PLACE) : key)
  await replaceFile(certPath, `${made.certificate.toString('pem')}\n`)
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
  const keys = await newKeys()
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serial(),
      subject: 'CN=clusterpulse-api',
      issuer: authority.certificate.subject,
      notBefore: new Date(nowMs - DAY_MS),
      notAfter: new Date(nowMs + 365 * DAY_MS),
      signingAlgorithm: ALGORITHM,
      signingKey: authority.key,
      publicKey: keys.publicKey,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension(
          options.hosts.map((host) => ({ type: isIP(host) ? ('ip' as const) : ('dns' as const), value: host })),
        ),
      ],
    },
    crypto,
  )
  return {
    cert: `${certificate.toString('pem')}\n`,
    key: await pemOf(keys.privateKey),
    ca: `${authority.certificate.toString('pem')}\n`,
  }
}
