import { X509Certificate } from 'node:crypto'
import type { KollectKnown } from '#kinds'
import type { ConfigReader } from '#runtime'
import { parseKeys } from '#sealing'
import { inventoryKnown } from '../inventory-config.ts'
import { fileText } from './config-access.ts'

/** Where the embedded Kubernetes API listens, and whose certificates it takes. */
export interface ControlPlaneConfig {
  readonly port: number
  /** PEM of CAs whose client certificates say who calls */
  readonly clientCa?: string
  /** keys that seal what is stored, the one in force first; none: one is made and kept in the data folder */
  readonly encryptionKeys: readonly Buffer[]
  readonly memberCa: AuthorityConfig
  /** by what objects of inventory are judged */
  readonly inventory: KollectKnown
}

/** The CA that signs members. */
export interface AuthorityConfig {
  /** PEM; absent: the hub makes its own */
  readonly given?: { readonly cert: string; readonly key: string }
  readonly certificateLifeMs: number
}

export function controlPlane(read: ConfigReader): ControlPlaneConfig {
  const port = read.integer('CONTROL_PLANE_PORT', {
    default: 8443,
    min: 0,
    max: 65535,
    meaning:
      'port of the embedded Kubernetes API on 127.0.0.1; 0 takes a free one. Where it is taken a free one is used, and kept at later starts',
  })
  const clientCa = fileText(
    read,
    'CONTROL_PLANE_CLIENT_CA',
    'PEM file of CAs whose client certificates say who calls the embedded Kubernetes API: CN is the user, O the groups',
  )
  if (clientCa !== undefined) checkAuthorities(read, 'CONTROL_PLANE_CLIENT_CA', clientCa)
  return {
    port,
    encryptionKeys: encryptionKeys(read),
    ...(clientCa !== undefined && { clientCa }),
    memberCa: memberCa(read),
    inventory: inventoryKnown(read),
  }
}

function encryptionKeys(read: ConfigReader): readonly Buffer[] {
  const text = read.secret('ENCRYPTION_KEY', {
    meaning:
      'keys that seal what the embedded Kubernetes API stores (Secrets and all else): 32 random bytes each in base64 or hex, the one in force first, former ones below it. Without it a key is made and kept in the data folder, as `control-plane/encryption.key`',
  })
  if (text === undefined) return []
  const keys = parseKeys(text)
  if (!keys)
    read.fault(
      'ENCRYPTION_KEY holds something else than keys: give 32 random bytes in base64 or hex, such as `openssl rand -base64 32` prints, one a line',
    )
  return keys ?? []
}

/** The settings of the CA that signs members. */
export function memberCa(read: ConfigReader): AuthorityConfig {
  const cert = fileText(
    read,
    'MEMBER_CA_CERT',
    'PEM file of the CA that signs members; default: one of our own, in the data folder, on Kubernetes in the Secret `hub-authority`',
  )
  const key = fileText(read, 'MEMBER_CA_KEY', 'PEM file of its private key: P-256, P-384 or RSA, without a passphrase')
  if ((cert === undefined) !== (key === undefined)) read.fault('MEMBER_CA_CERT and MEMBER_CA_KEY are given together')
  if (cert !== undefined) checkAuthorities(read, 'MEMBER_CA_CERT', cert)
  const certificateLifeMs = read.duration('MEMBER_CERTIFICATE_LIFE', {
    default: '30d',
    min: '1h',
    max: '365d',
    meaning: "life of a member's certificate, and the longest one can ask for",
  })
  return { ...(cert !== undefined && key !== undefined && { given: { cert, key } }), certificateLifeMs }
}

/** Else TLS would take no certificate at all, and nobody would know why. */
function checkAuthorities(read: ConfigReader, name: string, pem: string): void {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  const isAuthority = (block: string): boolean => {
    try {
      return new X509Certificate(block).ca
    } catch {
      return false // no certificate: said below
    }
  }
  if (blocks.length === 0 || !blocks.every(isAuthority))
    read.fault(`${name} must name a PEM file that holds certificates of CAs and no others`)
}
