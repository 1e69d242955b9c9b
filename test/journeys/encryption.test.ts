import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createClient } from '#http'
import { clusterConnection } from '#kinds'
import { accessForContext, createKubeClient, loadKubeconfig, type Resource, secrets, whole } from '#kube'
import { clusterpulse, eventually, type Running } from '../process.ts'

const { group, version, plural, kind } = clusterConnection
const connections: Resource = { group, version, plural, kind, namespaced: true }
const namespace = 'clusterpulse'
const NODES = 3

interface Kubeconfig {
  readonly clusters: readonly {
    readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string }
  }[]
  readonly users: readonly { readonly user: { readonly token: string } }[]
}

/** docs/guide/encryption.md, with a member whose credentials are a Secret of the hub. */
describe('a hub with a key of its own', () => {
  let directory: string
  let members: Running
  let hub: Running | undefined
  const at = (name: string) => join(directory, name)
  const aKey = () => randomBytes(32).toString('base64')
  const keys = { first: aKey(), second: aKey() }
  let token = ''

  const start = (given: readonly string[]) => {
    writeFileSync(at('keys'), given.join('\n'), { mode: 0o600 })
    hub = clusterpulse(
      ['up', '--data-dir', at('data'), '--port', '0', '--control-plane-port', '0', '--kubeconfig', at('members')],
      { env: given.length > 0 ? { ENCRYPTION_KEY_FILE: at('keys') } : {} },
    )
    return hub
  }
  /** It reads the member with the token of the Secret. */
  async function reads({ says }: Running): Promise<void> {
    const [, baseUrl = ''] = await says(/on (http:\S+)/)
    await eventually(
      () => createClient({ baseUrl }).clusters(),
      ({ items }) => items.find(({ name }) => name === 'west')?.nodes?.total === NODES,
    )
  }
  /** Files of the folder that hold it, raw or as a Secret does. */
  const whereIs = (text: string) =>
    readdirSync(at('data'), { recursive: true, encoding: 'utf8' })
      .filter((name) => statSync(at(join('data', name))).isFile())
      .filter((name) => {
        const bytes = readFileSync(at(join('data', name)))
        return bytes.includes(text) || bytes.includes(Buffer.from(text).toString('base64').slice(0, -4))
      })

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'encryption-'))
    members = clusterpulse([
      ...['simulate', '--clusters', '1', '--nodes', String(NODES), '--pods', '9'],
      ...['--kubeconfig-out', at('members')],
    ])
    await members.says(/kubeconfig in/)
  })
  afterAll(async () => {
    for (const one of [hub, members]) await one?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  it('keeps a credential of a member nowhere in its folder where it could be read, and reads on with it', async () => {
    const running = start([keys.first])
    await running.says(/on http/)
    const { clusters, users } = parse(readFileSync(at('members'), 'utf8')) as Kubeconfig // written by our simulator
    const [{ cluster } = { cluster: undefined }, { user } = { user: undefined }] = [clusters[0], users[0]]
    token = user?.token ?? ''
    expect(token.length).toBeGreaterThan(10)
    {
      await using kube = createKubeClient(await accessForContext(await loadKubeconfig([at('data/kubeconfig')])))
      await kube.create(whole(secrets), {
        metadata: { name: 'west', namespace },
        data: {
          token: Buffer.from(token).toString('base64'),
          'ca.crt': cluster?.['certificate-authority-data'],
        },
      })
      await kube.create(connections, {
        apiVersion: `${group}/${version}`,
        kind,
        metadata: { name: 'west', namespace },
        spec: { endpoint: cluster?.server, credentialsRef: { name: 'west' } },
      })
    }
    await reads(running)
    await running.kill('SIGKILL')
    expect(whereIs(token)).toEqual([])
    expect(whereIs(keys.first)).toEqual([])
  })

  it('is refused without that key, which is named, and says what to do', async () => {
    const refused = start([])
    expect(await refused.ended()).toBe(1)
    expect(refused.stderr()).toMatch(
      /sealed with the key [0-9a-f]{16}, and no key is at hand\. Nothing is lost: give that key.*\(encryption_key_missing\)$/m,
    )
    const other = start([keys.second])
    expect(await other.ended()).toBe(1)
    expect(other.stderr()).toMatch(/sealed with the key [0-9a-f]{16}, and only [0-9a-f]{16} is at hand/)
    expect(refused.stderr() + other.stderr()).not.toContain(keys.second)
  })

  it('takes a new key above the former one, seals all anew, and says that the former one may go', async () => {
    // As a version before put it aside.
    const aside = at('data/control-plane/objects/lost-2026-01-01/a/0000000000000000.segment')
    mkdirSync(dirname(aside), { recursive: true })
    writeFileSync(aside, `before ${token} after`)
    const rotating = start([keys.second, keys.first])
    await reads(rotating)
    await rotating.says(/the former key [0-9a-f]{16} any more.*it may go/)
    await rotating.kill('SIGTERM')
    const later = start([keys.second])
    await reads(later)
    expect(whereIs(token)).toEqual([])
    const env = { ENCRYPTION_KEY_FILE: at('keys') }
    const unseal = clusterpulse(['unseal', `${aside}.sealed`, '--data-dir', at('data')], { env })
    expect(await unseal.ended(), unseal.stderr()).toBe(0)
    expect(unseal.stdout()).toBe(`before ${token} after`)
    const keyless = clusterpulse(['unseal', `${aside}.sealed`, '--data-dir', at('data')])
    expect(await keyless.ended()).toBe(1)
    expect(keyless.stderr()).toMatch(/put aside is sealed with the key [0-9a-f]{16}.*ENCRYPTION_KEY_FILE/)
  })
})
