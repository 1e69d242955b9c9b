import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as tls from 'node:tls'
import { KubeError } from './errors.ts'
import type { ClusterAccess } from './types.ts'

/** Where Linux distributions keep the roots the machine's owner trusts. */
const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** Parsing some hundred roots takes time and memory, so contexts without their own CA and key share one. */
let systemContext: tls.SecureContext | undefined

/** Contexts in use, by what they are made of: clusters of one kubeconfig often have one CA. */
const contexts = new Map<string, WeakRef<tls.SecureContext>>()
const unused = new FinalizationRegistry((key: string) => {
  if (!contexts.get(key)?.deref()) contexts.delete(key)
})

/**
 * What a connection to this cluster is checked against: the given CA alone, else the roots of Node and of the system.
 * Made once, as a connection with plain options would parse every certificate again.
 * @throws KubeError `invalid` where CA, certificate or key are no PEM or do not fit.
 */
export function secureContextFor(
  access: Pick<ClusterAccess, 'ca'>,
  certificate?: { readonly cert: string; readonly key: string },
): tls.SecureContext {
  if (access.ca === undefined && !certificate) {
    systemContext ??= tls.createSecureContext({ ca: systemRoots() })
    return systemContext
  }
  const key = keyOf(access.ca, certificate)
  const known = contexts.get(key)?.deref()
  if (known) return known
  try {
    if (access.ca !== undefined && !access.ca.includes('-----BEGIN')) throw new Error('the CA is no PEM certificate')
    const context = tls.createSecureContext({ ca: access.ca ?? systemRoots(), ...certificate })
    contexts.set(key, new WeakRef(context))
    unused.register(context, key)
    return context
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new KubeError('invalid', `CA, client certificate or key cannot be used (${why}); give them as PEM`, { cause })
  }
}

/** A digest, as a key must not hold a secret. */
const keyOf = (ca = '', { cert = '', key = '' } = {}) =>
  createHash('sha256')
    .update(JSON.stringify([ca, cert, key]))
    .digest('base64')

function systemRoots(): string[] {
  // From Node 22.15 on, Node itself knows the system's store and NODE_EXTRA_CA_CERTS.
  if ('getCACertificates' in tls) {
    const known = tls as unknown as { getCACertificates(store: 'default' | 'system'): string[] }
    return [...new Set([...known.getCACertificates('default'), ...known.getCACertificates('system')])]
  }
  for (const path of SYSTEM_BUNDLES) {
    const bundle = readIfThere(path)
    if (bundle !== undefined) return [...tls.rootCertificates, bundle]
  }
  return [...tls.rootCertificates]
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // This distribution keeps it elsewhere.
  }
}
