import 'reflect-metadata'
import { execFileSync } from 'node:child_process'
import { createPrivateKey, type KeyObject, webcrypto } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type JsonName, Pkcs10CertificateRequestGenerator } from '@peculiar/x509'
import { CLUSTER_LABEL, type SigningRequest } from '../index.ts'

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const PREFIX = 'system:open-cluster-management:'

/** A request and the key it was made with. */
export interface RequestAndKey {
  readonly pem: string
  readonly key: KeyObject
}

export const subjectOfMember = (cluster: string, agent: string): JsonName => [
  { O: [PREFIX + cluster] },
  { CN: [`${PREFIX}${cluster}:${agent}`] },
]

/** A request with a new P-256 key. */
export async function aRequest(subject: JsonName = subjectOfMember('east', 'one')): Promise<RequestAndKey> {
  const keys = (await webcrypto.subtle.generateKey(ECDSA, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
  const request = await Pkcs10CertificateRequestGenerator.create(
    { name: subject, keys, signingAlgorithm: ECDSA },
    webcrypto,
  )
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  return {
    pem: `${request.toString('pem')}\n`,
    key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }),
  }
}

/** What OCM's agent creates, with this request in it. */
export const signingRequest = (
  pem: string,
  spec: Partial<NonNullable<SigningRequest['spec']>> = {},
  labels: Record<string, string> = { [CLUSTER_LABEL]: 'east' },
): SigningRequest => ({
  metadata: { labels },
  spec: {
    request: Buffer.from(pem).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['digital signature', 'key encipherment', 'client auth'],
    username: 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap',
    groups: ['system:serviceaccounts', 'system:authenticated'],
    ...spec,
  },
})

/** Runs openssl in a folder of its own. @returns what it wrote into `out.pem` */
export function openssl(args: readonly string[], files: Readonly<Record<string, string>> = {}): string {
  const dir = mkdtempSync(join(tmpdir(), 'openssl-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
    execFileSync('openssl', [...args, '-out', 'out.pem'], { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] })
    return readFileSync(join(dir, 'out.pem'), 'utf8')
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** A request made by openssl, with a new key of this sort. */
export function opensslRequest(
  subject: string,
  {
    key = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
    more = [],
    digest = '-sha256',
  }: {
    readonly key?: readonly string[]
    readonly more?: readonly string[]
    readonly digest?: string
  } = {},
): string {
  const config = '[req]\ndistinguished_name = dn\n[dn]\n'
  const args = [
    'req',
    '-new',
    '-config',
    'cnf',
    '-newkey',
    ...key,
    '-nodes',
    '-keyout',
    'key.pem',
    digest,
    '-subj',
    subject,
    '-utf8',
    ...more,
  ]
  return openssl(args, { cnf: config })
}

/** The CA that a signing controller of Kubernetes signs with, in PEM. */
export function signerOf(name: string): { readonly certificate: string; readonly key: string } {
  const key = openssl(['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'])
  const config = '[req]\ndistinguished_name = dn\n[dn]\n'
  const more = ['-subj', `/CN=${name}`, '-days', '3650', '-addext', 'basicConstraints=critical,CA:TRUE']
  const files = { 'key.pem': key, cnf: config }
  return { key, certificate: openssl(['req', '-x509', '-new', '-config', 'cnf', '-key', 'key.pem', ...more], files) }
}
