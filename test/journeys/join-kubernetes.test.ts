import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { ClusterView } from '#http'
import { clusterClaim, type ManagedClusterStatus } from '#kinds'
import { clusterpulse, eventually, nobodysKubeconfig, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const missing = noRealApiServer()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing
const SYSTEM = 'clusterpulse-system'
const SLOW_MS = 60_000

interface Document {
  readonly kind: string
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly template?: {
      readonly spec: {
        readonly containers: readonly {
          readonly args: readonly string[]
          readonly env: readonly { readonly name: string; readonly value?: string }[]
        }[]
      }
    }
  }
}

/** A hub of `up`, and a real API server as the member: the manifest is applied there, and the agent runs as the account of its pod. */
describe.skipIf(why !== undefined)(`joining by manifest${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let directory: string
  let real: RealApiServer
  let hub: Running
  let base: string
  const running: Running[] = []
  const at = (name: string) => join(directory, name)

  const kubectl = async (config: string, args: readonly string[], input?: string) => {
    const run = program('kubectl', ['--kubeconfig', at(config), ...args], input === undefined ? {} : { input })
    const code = await run.ended()
    return { code, out: run.stdout(), err: run.stderr() }
  }
  const onMember = async (args: readonly string[], input?: string) => {
    const { code, out, err } = await kubectl('member', args, input)
    expect(code, `kubectl ${args.join(' ')}: ${err}`).toBe(0)
    return out
  }
  const run = async (...args: string[]) => {
    const command = clusterpulse([...args, '--kubeconfig', at('hub/kubeconfig')])
    return { code: await command.ended(), out: command.stdout(), err: command.stderr() }
  }
  /** As the pod of the manifest: its arguments, its environment, its account. */
  const startPod = async (documents: readonly Document[]): Promise<Running> => {
    const token = (await onMember(['-n', SYSTEM, 'create', 'token', 'clusterpulse-collector', '--duration=1h'])).trim()
    await writeFile(at('account'), real.kubeconfig.replace(/token: \S+/, `token: ${token}`), { mode: 0o600 })
    const [container] = documents.find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec.containers ?? []
    const secret = await onMember([
      '-n',
      SYSTEM,
      'get',
      'secret',
      'clusterpulse-collector-token',
      '-o',
      'jsonpath={.data.token}',
    ])
    const given = (container?.env ?? []).map(({ name, value }) => [
      name,
      value ?? Buffer.from(secret, 'base64').toString(),
    ])
    const env = { ...Object.fromEntries(given), BUFFER_DIR: at('buffer'), KUBECONFIG: at('account') }
    const agent = clusterpulse([...(container?.args ?? [])], { env: { ...env, HEALTH_ADDRESS: '127.0.0.1:0' } })
    running.push(agent)
    return agent
  }
  const says = (agent: Running, words: string) =>
    eventually(
      async () => agent.stderr(),
      (text) => text.includes(words),
      SLOW_MS,
    )
  const managed = async () => {
    const { out } = await kubectl('hub/kubeconfig', ['get', 'managedcluster', 'edge', '-o', 'json'])
    return (JSON.parse(out) as { status?: ManagedClusterStatus }).status
  }
  const claimsOf = (status: ManagedClusterStatus | undefined) =>
    Object.fromEntries((status?.clusterClaims ?? []).map(({ name = '', value = '' }) => [name, value]))
  const identity = () =>
    onMember(['-n', SYSTEM, 'get', 'secret', 'clusterpulse-agent-identity', '-o', 'jsonpath={.data}'])

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'join-kubernetes-'))
    const started = await startRealApiServer()
    if (!started) throw new Error('no real kube-apiserver')
    real = started
    // Fills the role `admin`.
    expect(await real.aggregateRoles()).toBe(true)
    await writeFile(at('member'), real.kubeconfig, { mode: 0o600 })
    hub = clusterpulse([
      ...['up', '--kubeconfig', await nobodysKubeconfig(directory), '--data-dir', at('hub')],
      ...['--port', '0', '--control-plane-port', '0', '--ingester-port', '0'],
    ])
    ;[, base = ''] = await hub.says(/on (http:\S+)/)
    await onMember(['apply', '-f', '-'], JSON.stringify(clusterClaim.crd()))
    await onMember(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    await onMember(['apply', '-f', '-'], JSON.stringify(claim('zone', 'a')))
  })
  afterAll(async () => {
    for (const one of [...running, hub]) await one?.[Symbol.asyncDispose]()
    await real?.stop()
    await rm(directory, { recursive: true, force: true })
  })

  const claim = (name: string, value: string) => ({
    ...{ apiVersion: 'cluster.open-cluster-management.io/v1alpha1', kind: 'ClusterClaim' },
    ...{ metadata: { name }, spec: { value } },
  })

  it('is what it was accepted ahead for: a member with its claims, whose key never left the member', async () => {
    const printed = await run(
      'connect',
      'edge',
      '-o',
      'manifest',
      '--accept',
      '--rights',
      'namespaced:shop',
      '--buffer-size',
      '0',
    )
    expect(printed.code, printed.err).toBe(0)
    // The namespaces that are named are people's: the manifest makes none.
    await onMember(['create', 'namespace', 'shop'])
    await onMember(['apply', '--server-side', '-f', '-'], printed.out)
    const documents = parseAllDocuments(printed.out).map((one) => one.toJSON() as Document)
    const agent = await startPod(documents)
    const status = await eventually(managed, (one) => claimsOf(one).zone === 'a', SLOW_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${agent.stderr().slice(-3000)}`)
    })
    expect(claimsOf(status)).toMatchObject({
      'id.k8s.io': await onMember(['get', 'namespace', 'kube-system', '-o', 'jsonpath={.metadata.uid}']),
      'rights.clusterpulse.io': 'namespaced:shop',
      'kubeversion.open-cluster-management.io': status?.version?.kubernetes,
    })
    expect(status?.conditions?.find(({ type }) => type === 'ManagedClusterJoined')).toMatchObject({ status: 'True' })
    expect(await identity()).toMatch(/member\.json/)
    expect(await identity()).not.toMatch(/asking\.json/)
    const view = (await (await fetch(`${base}/api/v2/clusters/edge`)).json()) as ClusterView
    expect(view.agent).toMatchObject({ connected: true, tls: true })

    // A claim that is made, and one that is taken away, are there in a moment.
    await onMember(['apply', '-f', '-'], JSON.stringify(claim('tier', 'gold')))
    await onMember(['delete', 'clusterclaim', 'zone'])
    await eventually(managed, (one) => claimsOf(one).tier === 'gold' && claimsOf(one).zone === undefined, SLOW_MS)

    // Applied again it leaves the identity; begun again, without its token, the agent is who it was.
    await onMember(['apply', '--server-side', '-f', '-'], printed.out)
    await onMember(['-n', SYSTEM, 'delete', 'secret', 'clusterpulse-collector-token'])
    await agent.kill('SIGKILL')
    await rm(at('buffer'), { recursive: true, force: true })
    const env = {
      IDENTITY_SECRET: `${SYSTEM}/clusterpulse-agent-identity`,
      BUFFER_DIR: at('buffer'),
      KUBECONFIG: at('account'),
    }
    const again = clusterpulse(['join'], { env: { ...env, HEALTH_ADDRESS: '127.0.0.1:0' } })
    running.push(again)
    await says(again, 'edge is a member already')
    await says(again, '"msg":"collecting')
  })

  it('may read what it collects, keep its one Secret, and change what was chosen through another account alone', async () => {
    const agent = `system:serviceaccount:${SYSTEM}:clusterpulse-collector`
    const executor = `system:serviceaccount:${SYSTEM}:clusterpulse-executor`
    const may = async (as: string, ...words: string[]) =>
      (await kubectl('member', ['auth', 'can-i', ...words, '--as', as])).out.trim()
    const identitySecret = 'secret/clusterpulse-agent-identity'
    expect(
      await Promise.all([
        may(agent, 'list', 'pods', '-A'),
        may(agent, 'get', identitySecret, '-n', SYSTEM),
        may(agent, 'patch', identitySecret, '-n', SYSTEM),
        may(agent, 'impersonate', 'serviceaccount/clusterpulse-executor', '-n', SYSTEM),
        may(executor, 'create', 'deployments', '-n', 'shop'),
      ]),
    ).toEqual(['yes', 'yes', 'yes', 'yes', 'yes'])
    expect(
      await Promise.all([
        may(agent, 'list', 'secrets', '-n', SYSTEM),
        may(agent, 'delete', identitySecret, '-n', SYSTEM),
        may(agent, 'get', 'secret/clusterpulse-collector-token', '-n', SYSTEM),
        may(agent, 'create', 'deployments', '-n', 'shop'),
        may(agent, 'impersonate', 'serviceaccount/default', '-n', SYSTEM),
        may(executor, 'create', 'deployments', '-n', 'default'),
        may(executor, 'list', 'pods', '-A'),
      ]),
    ).toEqual(['no', 'no', 'no', 'no', 'no', 'no', 'no'])
  })

  it('printed and applied again with fewer rights it is the same member with these, and nobody is asked anew', async () => {
    await running.at(-1)?.kill('SIGTERM')
    const before = await identity()
    const printed = await run('connect', 'edge', '-o', 'manifest', '--buffer-size', '0')
    expect(printed.code, printed.err).toBe(0)
    await onMember(['apply', '--server-side', '-f', '-'], printed.out)
    const agent = await startPod(parseAllDocuments(printed.out).map((one) => one.toJSON() as Document))
    await says(agent, 'edge is a member already')
    await eventually(managed, (one) => claimsOf(one)['rights.clusterpulse.io'] === 'observe', SLOW_MS)
    expect(await identity()).toBe(before)
    const as = ['--as', `system:serviceaccount:${SYSTEM}:clusterpulse-collector`]
    const executor = ['impersonate', 'serviceaccount/clusterpulse-executor', '-n', SYSTEM]
    expect((await kubectl('member', ['auth', 'can-i', ...executor, ...as])).out.trim()).toBe('no')
  })

  it('after it was revoked a new manifest is enough: it joins anew by itself, beside the identity of before', async () => {
    const before = await identity()
    const revoked = await run('revoke', 'edge')
    expect(revoked.code, revoked.err).toBe(0)
    await running.at(-1)?.kill('SIGTERM')
    const printed = await run('connect', 'edge', '-o', 'manifest', '--buffer-size', '0')
    await onMember(['apply', '--server-side', '-f', '-'], printed.out)
    const agent = await startPod(parseAllDocuments(printed.out).map((one) => one.toJSON() as Document))
    await says(agent, 'it joins anew with the token it was given: waiting')
    const accepted = await run('accept', 'edge')
    expect(accepted.code, accepted.err).toBe(0)
    await says(agent, '"msg":"it joined anew"')
    expect(await identity()).not.toBe(before)
  })

  it('is taken off the member again as its manifest says, whatever rights it ever had, and leaves the namespaces of others', async () => {
    await running.at(-1)?.kill('SIGTERM')
    // The right in `shop` is there from before.
    const printed = await run('connect', 'edge', '-o', 'manifest', '--rights', 'full', '--buffer-size', '0')
    await onMember(['apply', '--server-side', '-f', '-'], printed.out)
    const found = async () => {
      const kinds = 'clusterroles,clusterrolebindings,rolebindings'
      const labelled = await onMember([
        'get',
        kinds,
        '-A',
        '-o',
        'name',
        '-l',
        'app.kubernetes.io/part-of=clusterpulse',
      ])
      return labelled.split('\n').filter((name) => /executor|collector/.test(name)).length
    }
    expect(await found()).toBeGreaterThanOrEqual(4)
    const [, ...lines] = printed.out.slice(printed.out.indexOf('# To take the agent off')).split('\n')
    const commands = lines.filter((line) => line.startsWith('#   kubectl'))
    expect(commands).toHaveLength(3)
    // Nothing ends a namespace where no controller manager runs.
    for (const line of commands) await onMember([...line.replace('#   kubectl ', '').split(' '), '--wait=false'])
    expect(await found()).toBe(0)
    const phase = (name: string) => onMember(['get', 'namespace', name, '-o', 'jsonpath={.status.phase}'])
    expect([await phase(SYSTEM), await phase('shop')]).toEqual(['Terminating', 'Active'])
  })
})
