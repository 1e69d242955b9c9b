import { readFileSync } from 'node:fs'
import * as tls from 'node:tls'
import { ProbeError } from './errors.ts'

/** Where distributions keep the roots that the machine's owner trusts. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** Reading some hundred roots takes time and memory: one context for all registries without a CA of their own. */
let systemContext: tls.SecureContext | undefined

/** What servers are verified with where a registry names no CA. */
export function systemRoots(): tls.SecureContext {
  systemContext ??= tls.createSecureContext({ ca: rootTexts() })
  return systemContext
}

/**
 * The given CAs alone, or besides those of the system.
 * @throws ProbeError `ca_invalid` where the text holds no certificate
 */
export function rootsOf(caPem: string, besidesSystem: boolean): tls.SecureContext {
  try {
    if (!caPem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('there is no certificate in it')
    return tls.createSecureContext({ ca: besidesSystem ? [caPem, ...rootTexts()] : caPem })
  } catch (cause) {
    throw new ProbeError('ca_invalid', 'caBundle cannot be used: give one or more certificates as PEM', { cause })
  }
}

function rootTexts(): string[] {
  // From Node 22.15 on, Node itself knows the system's store and NODE_EXTRA_CA_CERTS.
  if ('getCACertificates' in tls) {
    const known = tls as unknown as { getCACertificates(store: 'default' | 'system'): string[] }
    return [...new Set([...known.getCACertificates('default'), ...known.getCACertificates('system')])]
  }
  const bundle = BUNDLES.map(textOf).find((text) => text !== undefined)
  return bundle === undefined ? [...tls.rootCertificates] : [...tls.rootCertificates, bundle]
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // this distribution keeps it elsewhere
  }
}
