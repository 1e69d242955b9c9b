import { spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterView } from '#http'
import type { ManagedClusterStatus } from '#kinds'
import { accessForContext, createKubeClient, loadKubeconfig, type OwnedKubeClient } from '#kube'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

/** A hub and a machine that reaches a cluster; what is done is done with the commands people have. */
describe('joining', () => {
  let directory: string
  let members: Running
  let hub: Running
  let base: string
  let kube: OwnedKubeClient
  const running: Running[] = []
  const objects = () => join(directory, 'hub/kubeconfig')
  const member = () => join(directory, 'members')
  const audit = () => join(directory, 'audit.jsonl')

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'join-'))
    const size = ['--clusters', '1', '--nodes', '3', '--pods', '20']
    members = clusterpulse(['simulate', ...size, '--kubeconfig-out', member()])
    await members.says(/kubeconfig in/)
    hub = clusterpulse(
      [
        ...['up', '--kubeconfig', member(), '--data-dir', join(directory, 'hub')],
        ...['--port', '0', '--control-plane-port', '0', '--ingester-port', '0'],
      ],
      { env: { AUDIT_FILE: audit() } },
    )
    const [, address = ''] = await hub.says(/on (http:\S+)/)
    base = address
    kube = createKubeClient(await accessForContext(await loadKubeconfig([objects()])))
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    for (const one of [...running, hub, members]) await one?.[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  const run = async (...args: string[]) => {
    const command = clusterpulse([...args, '--kubeconfig', objects()])
    return { code: await command.ended(), out: command.stdout(), err: command.stderr() }
  }
  const tokenFor = async (cluster: string): Promise<string> => {
    const { code, out, err } = await run('connect', cluster)
    expect(code, err).toBe(0)
    const [, token = ''] = /npx clusterpulse join (\S+)/.exec(out) ?? []
    return token
  }
  /** As on a second machine, with a folder of its own. */
  const machine = (folder: string, ...args: string[]): Running => {
    const agent = clusterpulse(['join', ...args, '--kubeconfig', member(), '--buffer-dir', join(directory, folder)], {
      env: { HEALTH_ADDRESS: '127.0.0.1:0' },
    })
    running.push(agent)
    return agent
  }
  const waits = (agent: Running) =>
    eventually(
      async () => agent.stderr(),
      (said) => said.includes('waiting: '),
    )
  const view = async (cluster: string): Promise<ClusterView | undefined> => {
    const answer = await fetch(`${base}/api/v2/clusters/${cluster}`)
    return answer.ok ? ((await answer.json()) as ClusterView) : undefined
  }
  const isPushed = async (cluster: string): Promise<boolean> => {
    const seen = await view(cluster)
    return seen?.agent?.connected === true && seen.source === 'push' && seen.nodes !== null
  }
  const yes = (answer: boolean) => answer
  const trail = async () => (await readFile(audit(), 'utf8').catch(() => '')).split('\n').filter(Boolean)
  /** What OpenSSL makes of the listener with a member's certificate: the connection stays for half a second, or it ends. */
  const isLetIn = async (folder: string): Promise<boolean> => {
    const identity = JSON.parse(await readFile(join(directory, folder, 'identity/member.json'), 'utf8')) as {
      readonly certificate: string
      readonly key: string
      readonly hub: { readonly addresses: readonly string[] }
    }
    const [cert, key] = [join(directory, 'tls.crt'), join(directory, 'tls.key')]
    await writeFile(cert, identity.certificate)
    await writeFile(key, identity.key, { mode: 0o600 })
    const words = `(sleep 1) | openssl s_client -connect ${identity.hub.addresses[0]} -alpn h2 -cert ${cert} -key ${key} -quiet 2>&1; echo`
    const startedAt = Date.now()
    const shown = spawnSync('timeout', ['3', 'sh', '-c', `${words} ended`], { encoding: 'utf8' })
    // -quiet goes on after the end of input; only the end of the connection ends it before the patience does.
    return !shown.stdout.includes('ended') || Date.now() - startedAt > 2_500
  }

  it('a machine asks, is accepted, is monitored, comes back after kill -9, and is revoked within seconds', async () => {
    const token = await tokenFor('edge')
    const agent = machine('edge', token)
    expect(await waits(agent)).toMatch(/clusterpulse accept edge/)
    expect(await view('edge')).toBeUndefined()
    const managed = (await kube.request('GET', '/apis/cluster.open-cluster-management.io/v1/managedclusters/edge')) as {
      readonly spec?: { readonly hubAcceptsClient?: boolean }
    }
    expect(managed.spec?.hubAcceptsClient).toBe(false)

    // The key is there before anybody said yes, and nobody else can read it.
    const asking = join(directory, 'edge/identity/asking.json')
    expect((await stat(asking)).mode & 0o777).toBe(0o600)

    const accepted = await run('accept', 'edge')
    expect(accepted.code, accepted.err).toBe(0)
    expect(accepted.out).toMatch(/request edge-\w+ is approved \(from 127\.0\.0\.1, key \w{16}/)
    await eventually(() => isPushed('edge'), yes, 90_000)
    expect((await view('edge'))?.agent).toMatchObject({ tls: true })
    expect(await isLetIn('edge')).toBe(true)

    // The token is spent: another machine is told so, and the trail says so.
    const thief = machine('thief', token)
    expect(await thief.ended()).toBe(1)
    expect(thief.stderr()).toMatch(/the join token was used already/)
    await eventually(trail, (lines) =>
      lines.some((line) => line.includes('join_refused') && line.includes('used already')),
    )

    // What it is stands in its folder.
    await agent.kill('SIGKILL')
    const again = machine('edge')
    await eventually(async () => (await view('edge'))?.agent?.connected === false || isPushed('edge'), yes)
    await eventually(() => isPushed('edge'), yes, 90_000)

    const revoked = await run('revoke', 'edge')
    expect(revoked.code, revoked.err).toBe(0)
    // The limits are those of a machine that has much else to do.
    await eventually(async () => (await view('edge'))?.agent?.connected !== true, yes, 20_000)
    await eventually(
      () => isLetIn('edge'),
      (letIn) => !letIn,
      30_000,
    )
    expect(again.stderr()).not.toContain(token)
    const events = async () =>
      (await trail()).flatMap((line) => /"route":"((?:join|member)_\w+)"/.exec(line)?.[1] ?? [])
    await expect
      .poll(events)
      .toEqual(
        expect.arrayContaining([
          'join_asked',
          'member_accepted',
          'join_granted',
          'join_refused',
          'member_ended',
          'member_revoked',
        ]),
      )
  })

  it('kubectl certificate approve and hubAcceptsClient do the same, in either order', async () => {
    const agent = machine('north', await tokenFor('north'))
    await waits(agent)
    const path = '/apis/cluster.open-cluster-management.io/v1/managedclusters/north'
    const body = { spec: { hubAcceptsClient: true } }
    await kube.request('PATCH', path, { body, contentType: 'application/merge-patch+json' })
    const [, request = ''] = /certificate approve (north-\w+)/.exec(agent.stderr()) ?? []
    const csr = `/apis/certificates.k8s.io/v1/certificatesigningrequests/${request}`
    const found = (await kube.request('GET', csr)) as { status?: object }
    const condition = { type: 'Approved', status: 'True', reason: 'ByHand', message: '' }
    await kube.request('PUT', `${csr}/approval`, {
      body: { ...found, status: { ...found.status, conditions: [condition] } },
      contentType: 'application/json',
    })
    await eventually(() => isPushed('north'), yes, 90_000)
  })

  it.each([
    [
      'with one certificate',
      'both',
      ['identity/member.json'],
      /[\w.-]+ with key [0-9a-f]{16} at 127\.0\.0\.1 and [\w.-]+ with key [0-9a-f]{16} at 127\.0\.0\.1: the newer/,
    ],
    [
      'of which one is a copy of the other with all it has',
      'clone',
      ['.'],
      /([\w.-]+) with key ([0-9a-f]{16}) at 127\.0\.0\.1 and (?!\1 )[\w.-]+ with key \2 at 127\.0\.0\.1; one runs on a copy .*: the newer/,
    ],
  ])(
    'two agents %s: the newer is served, the other waits, and a condition names both',
    async (_, name, what, words) => {
      const first = machine(name, await tokenFor(name))
      await waits(first)
      expect((await run('accept', name)).code).toBe(0)
      await eventually(() => isPushed(name), yes, 90_000)
      for (const one of what) {
        const [from, to] = [name, `${name}-copy`].map((folder) => join(directory, folder, one)) as [string, string]
        await mkdir(dirname(to), { recursive: true, mode: 0o700 })
        // On another machine the process that holds the locks of the original does not run.
        await cp(from, to, { recursive: true, filter: (path) => !/\/lock(\.[\w-]+)?$/.test(path) })
      }
      const second = machine(`${name}-copy`)
      const path = `/apis/cluster.open-cluster-management.io/v1/managedclusters/${name}`
      const single = async () => {
        const { status } = (await kube.request('GET', path)) as { status?: ManagedClusterStatus }
        return status?.conditions?.find(({ type }) => type === 'SingleAgent')
      }
      const condition = await eventually(single, (one) => one?.status === 'False', 60_000)
      expect(condition?.message).toMatch(/two agents use the identity of this cluster: /)
      expect(condition?.message).toMatch(words)
      for (const [, agent] of condition?.message.matchAll(/([\w.-]+) with key/g) ?? [])
        await expect.poll(() => `${first.stderr()}${second.stderr()}`).toContain(agent)
      expect((await view(name))?.agent).toMatchObject({ connected: true })
      const told = () => Promise.resolve(`${first.stderr()}${second.stderr()}`)
      await eventually(told, (said) => said.includes('another agent uses the identity of this cluster'), 60_000)
    },
  )

  it('a machine that waits says that it lives and what for; denied, it is told why, and ends', async () => {
    const port = await freePort()
    const words = ['--kubeconfig', member(), '--buffer-dir', join(directory, 'south')]
    const agent = clusterpulse(['join', await tokenFor('south'), ...words], {
      env: { HEALTH_ADDRESS: `127.0.0.1:${port}` },
    })
    running.push(agent)
    await waits(agent)
    const probed = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
    expect((await probed('/healthz')).status).toBe(200)
    const ready = await probed('/readyz')
    expect(ready.status).toBe(503)
    expect(await ready.text()).toMatch(/waiting: .*clusterpulse accept south/)
    expect((await run('deny', 'south')).code).toBe(0)
    expect(await agent.ended()).toBe(1)
    expect(agent.stderr()).toMatch(/the request was denied/)
  })

  it('a machine tells the hub the rights it was given', async () => {
    const connected = await run('connect', 'right', '--accept', '--rights', 'full')
    expect(connected.code, connected.err).toBe(0)
    const [, token = '', rights = ''] = /join (\S+) --rights (\S+)/.exec(connected.out) ?? []
    const agent = machine('right', token, '--rights', rights)
    const path = '/apis/cluster.open-cluster-management.io/v1/managedclusters/right'
    const claims = async () => {
      const { status } = (await kube.request('GET', path)) as { status?: ManagedClusterStatus }
      return (status?.clusterClaims ?? []).map(({ name, value }) => `${name} ${value}`)
    }
    await eventually(claims, (all) => all.includes('rights.clusterpulse.io full'), 60_000).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${agent.stderr().slice(-2000)}`)
    })
  })

  it.each([
    ['that is none', 'cpj1_bm90aGluZw', /this is no join token/],
    ['of which a part is missing', 'cpj1_eyJjIjoid2', /this is no join token/],
  ])('refuses a token %s in one sentence, before it asks anybody', async (_, token, words) => {
    const agent = machine('nobody', token)
    expect(await agent.ended()).toBe(1)
    expect(agent.stderr()).toMatch(words)
    expect(agent.stderr()).not.toMatch(/ at .*\.js:/)
  })
})
