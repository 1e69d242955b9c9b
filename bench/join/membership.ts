import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit from 'p-limit'
import { issueClientCertificate } from '../../src/platform/authority/certificates.ts'
import { memberGroup, memberUser, newAuthorityPair, readAuthorityPair } from '../../src/platform/authority/index.ts'
import type { KubeClient, KubeObject, Resource } from '../../src/platform/kube/index.ts'

const OCM = 'cluster.open-cluster-management.io'
export const managedClusters: Resource = {
  ...{ group: OCM, version: 'v1', plural: 'managedclusters', kind: 'ManagedCluster', namespaced: false },
}
const DAY_MS = 86_400_000
const DECLARED_AT_ONCE = 64

/** Who a simulated member is: the key is the same for all of them, as making ten thousand would measure nothing of the hub. */
export interface Identity {
  readonly name: string
  readonly certificate: string
}

/** A CA that the hub is given, so that the bench can sign members without asking them to join one by one. */
export class BenchAuthority {
  readonly key: string
  readonly env: Readonly<Record<string, string>>
  readonly #pair: Awaited<ReturnType<typeof readAuthorityPair>>
  readonly #spki: Buffer

  private constructor(env: Readonly<Record<string, string>>, pair: Awaited<ReturnType<typeof readAuthorityPair>>) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
    this.#spki = publicKey.export({ type: 'spki', format: 'der' })
    this.#pair = pair
    this.env = env
  }

  static async make(directory: string): Promise<BenchAuthority> {
    const text = await newAuthorityPair('bench', Date.now(), 365 * DAY_MS)
    const [cert, key] = [join(directory, 'member-ca.crt'), join(directory, 'member-ca.key')]
    await writeFile(cert, text.cert)
    await writeFile(key, text.key, { mode: 0o600 })
    return new BenchAuthority({ MEMBER_CA_CERT: cert, MEMBER_CA_KEY: key }, await readAuthorityPair(text))
  }

  async identity(name: string): Promise<Identity> {
    const now = Date.now()
    const { pem } = await issueClientCertificate(this.#pair, {
      ...{ commonName: memberUser({ cluster: name, agent: 'bench' }), organizations: [memberGroup(name)] },
      ...{ spki: this.#spki, isRsa: false, notBeforeMs: now - 60_000, notAfterMs: now + 30 * DAY_MS },
    })
    return { name, certificate: pem }
  }
}

/** Makes them members, as a person who accepts them would, with the certificate that counts; the hub settles them after that. */
export async function makeMembers(kube: KubeClient, identities: readonly Identity[]): Promise<void> {
  const atOnce = pLimit(DECLARED_AT_ONCE)
  await Promise.all(identities.map((identity) => atOnce(() => kube.create(managedClusters, memberOf(identity)))))
}

function memberOf({ name, certificate }: Identity): KubeObject {
  const fingerprint = new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase()
  const annotations = { 'clusterpulse.io/transport': 'stream', 'clusterpulse.io/certificates': fingerprint }
  return {
    apiVersion: `${OCM}/v1`,
    kind: 'ManagedCluster',
    metadata: { name, annotations },
    spec: { hubAcceptsClient: true, leaseDurationSeconds: 60 },
  }
}

/** status of a condition of it */
export function conditionOf({ status }: KubeObject, type: string): string | undefined {
  const { conditions = [] } = (status ?? {}) as { conditions?: readonly { type: string; status: string }[] }
  return conditions.find((one) => one.type === type)?.status
}
