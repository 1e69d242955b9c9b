import { X509Certificate } from 'node:crypto'
import type { ConfigReader } from '#runtime'
import { fileText } from './config-access.ts'

/** Where the embedded Kubernetes API listens, and whose certificates it takes. */
export interface ControlPlaneConfig {
  readonly port: number
  /** PEM of CAs whose client certificates say who calls */
  readonly clientCa?: string
}

export function controlPlane(read: ConfigReader): ControlPlaneConfig {
  const port = read.integer('CONTROL_PLANE_PORT', {
    default: 8443,
    min: 0,
    max: 65535,
    meaning: 'port of the embedded Kubernetes API on 127.0.0.1; 0 takes a free one',
  })
  const clientCa = fileText(
    read,
    'CONTROL_PLANE_CLIENT_CA',
    'PEM file of CAs whose client certificates say who calls the embedded Kubernetes API: CN is the user, O the groups',
  )
  if (clientCa !== undefined) checkAuthorities(read, 'CONTROL_PLANE_CLIENT_CA', clientCa)
  return { port, ...(clientCa !== undefined && { clientCa }) }
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
