import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ocmKinds } from '#kinds'
import { type ApiListener, listenApi } from './listen.ts'
import { ApiServer } from './server.ts'
import type { ApiObject } from './types.ts'

const missing =
  spawnSync('kubectl', ['version', '--client']).status === 0 || process.env.CI_REQUIRE_ALL === '1'
    ? undefined
    : 'kubectl is not installed'

const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: links.test.example.io
spec:
  group: test.example.io
  scope: Namespaced
  names: { plural: links, singular: link, kind: Link, shortNames: [lk] }
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: { status: {} }
      additionalPrinterColumns:
        - { name: Endpoint, type: string, jsonPath: .spec.endpoint }
        - { name: Phase, type: string, jsonPath: .status.phase }
        - { name: Interval, type: integer, jsonPath: .spec.intervalSeconds, priority: 1 }
        - { name: Age, type: date, jsonPath: .metadata.creationTimestamp }
      schema:
        openAPIV3Schema:
          type: object
          description: A way to reach a cluster.
          required: [spec]
          properties:
            spec:
              type: object
              required: [endpoint]
              properties:
                endpoint: { type: string, description: Where the API answers., pattern: "^https://" }
                intervalSeconds: { type: integer, default: 60, minimum: 30 }
                tags: { type: object, additionalProperties: { type: string } }
                rules:
                  type: array
                  items: { type: object, properties: { name: { type: string }, on: { type: boolean } } }
            status:
              type: object
              properties: { phase: { type: string } }
`
const link = (name: string, spec: string) =>
  `apiVersion: test.example.io/v1alpha1\nkind: Link\nmetadata:\n  name: ${name}\nspec:\n${spec.replace(/^/gm, '  ')}\n`

describe.skipIf(missing)(`kubectl${missing ? ` (${missing})` : ''}`, () => {
  let dir: string
  let server: ApiServer
  let listener: ApiListener

  interface Ended {
    readonly code: number
    readonly out: string
    readonly err: string
  }
  const environment = (more: Record<string, string> = {}) => ({
    ...process.env,
    KUBECONFIG: join(dir, 'kubeconfig'),
    HOME: dir,
    ...more,
  })
  const run = (args: readonly string[], input = '', env: Record<string, string> = {}): Promise<Ended> =>
    new Promise((resolve) => {
      const child = execFile('kubectl', [...args], { env: environment(env), timeout: 15_000 }, (error, out, err) =>
        resolve({ code: error ? 1 : 0, out, err }),
      )
      child.stdin?.end(input)
    })
  /** Runs it, expects it to succeed. @returns what it says */
  const kubectl = async (args: string, input = '', env: Record<string, string> = {}): Promise<string> => {
    const { code, out, err } = await run(args.split(' '), input, env)
    if (code !== 0) throw new Error(`kubectl ${args}: ${err}${out}`)
    return out
  }
  const object = async (args: string) => JSON.parse(await kubectl(`get ${args} -o json`))

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'kubectl-'))
    server = await ApiServer.open({ storage: { kind: 'memory' }, defaultRoles: true })
    listener = await listenApi({
      // `--raw` of older kubectl leaves out the path of the server.
      mounts: new Map([
        ['/clusters/east', server],
        ['', server],
      ]),
      tokens: [{ token: 'kubectl-token', user: 'tester', groups: ['system:masters'] }],
    })
    const config = listener.kubeconfig({ context: 'east', token: 'kubectl-token', prefix: '/clusters/east' })
    writeFileSync(join(dir, 'kubeconfig'), config, { mode: 0o600 })
    await kubectl('apply -f -', DEFINITION)
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await listener[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  const row = (table: string, name: string): string[] =>
    table
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(/ {2,}/)
      .map((cell) => cell.trim()) ?? []

  it('gets what is there, in its columns', async () => {
    const table = await kubectl('get namespaces')
    expect(table.split('\n')[0]).toMatch(/^NAME +STATUS +AGE$/)
    expect(row(table, 'kube-system').slice(0, 2)).toEqual(['kube-system', 'Active'])
    expect(await kubectl('get crd links.test.example.io')).toMatch(/links\.test\.example\.io +\d{4}-/)
    expect(await kubectl('get namespace default -o yaml')).toContain('kind: Namespace')
    expect(await kubectl('get ns -o name')).toContain('namespace/default')
    expect((await run(['get', 'lk', 'none'])).err).toContain('links.test.example.io "none" not found')
  })

  it('acts as another by the right to, and hears what is missing', async () => {
    await kubectl('create clusterrolebinding viewers --clusterrole=view --group=viewers')
    expect(await kubectl('get configmaps --as=ann --as-group=viewers')).toBe('')
    const refused = await run(['get', 'secrets', '-A', '--as=ann', '--as-group=viewers'])
    expect(refused.err).toContain('User "ann" cannot list resource "secrets" in API group "" at the cluster scope')
    expect(await kubectl('auth can-i list pods --as=ann --as-group=viewers')).toBe('yes\n')
    expect((await run(['auth', 'can-i', 'create', 'pods', '--as=ann', '--as-group=viewers'])).out).toBe('no\n')
    const listed = await kubectl('auth can-i --list --as=system:serviceaccount:default:nobody')
    expect(listed).toMatch(/selfsubjectaccessreviews\.authorization\.k8s\.io +\[\] +\[\] +\[create\]/)
    expect(listed).not.toMatch(/secrets|\*\.\*/)
    expect(await kubectl('auth whoami -o jsonpath={.status.userInfo.groups} --as=ann --as-group=viewers')).toBe(
      '["viewers","system:authenticated"]',
    )
  })

  it('knows the resources, their short names and their versions', async () => {
    const resources = await kubectl('api-resources --no-headers')
    expect(resources).toMatch(/links +lk +test\.example\.io\/v1alpha1 +true +Link/)
    expect(await kubectl('api-versions')).toContain('apps/v1')
    expect(await kubectl('version')).toContain('Server Version: v1.')
  })

  it('applies: creates, changes, and says when nothing changed', async () => {
    const first = link('applied', 'endpoint: https://a\ntags: { a: "1", b: "1" }')
    expect(await kubectl('apply -f -', first)).toContain('link.test.example.io/applied created')
    expect(await kubectl('apply -f -', first)).toContain('unchanged')
    const second = link('applied', 'endpoint: https://b\ntags: { b: "2" }')
    expect(await kubectl('apply -f -', second)).toContain('configured')
    expect((await object('link applied')).spec).toEqual({
      endpoint: 'https://b',
      intervalSeconds: 60,
      tags: { b: '2' },
    })
    const table = await kubectl('get links')
    expect(table.split('\n')[0]).toMatch(/^NAME +ENDPOINT +PHASE +AGE$/)
    expect(row(table, 'applied')[1]).toBe('https://b')
    expect((await kubectl('get links -o wide')).split('\n')[0]).toContain('INTERVAL')
  })

  it('applies built-in kinds', async () => {
    const map = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {x: "${value}"}\n`
    await kubectl('apply -f -', map('1'))
    expect(await kubectl('apply -f -', map('2'))).toContain('configured')
    expect((await object('cm applied')).data).toEqual({ x: '2' })
    const deployment = (image: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: applied}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: one, image: "${image}"}, {name: two, image: other}]}
`
    await kubectl('apply -f -', deployment('i:1'))
    expect(await kubectl('apply -f -', deployment('i:2'))).toContain('configured')
    expect(await kubectl('get deploy applied -o jsonpath={.spec.template.spec.containers[*].image}')).toBe('i:2 other')
    expect(row(await kubectl('get deployments'), 'applied')[1]).toBe('0/1')
  })

  it('refuses what the schema does not know or allow, before and on the server', async () => {
    const unknown = await run(['apply', '-f', '-'], link('bad', 'endpoint: https://a\nendpiont: x'))
    expect(unknown.code).toBe(1)
    expect(unknown.err).toContain('unknown field "spec.endpiont"')
    const invalid = await run(['apply', '-f', '-'], link('bad', 'endpoint: ftp://a\nintervalSeconds: 1'))
    expect(invalid.err).toContain('spec.intervalSeconds')
    expect(invalid.err).toContain('spec.endpoint')
  })

  it('applies server-side, and reports conflicts', async () => {
    const body = (endpoint: string) => link('served', `endpoint: ${endpoint}`)
    expect(await kubectl('apply --server-side -f -', body('https://a'))).toContain('serverside-applied')
    const conflict = await run(['apply', '--server-side', '--field-manager=other', '-f', '-'], body('https://b'))
    expect(conflict.code).toBe(1)
    expect(conflict.err).toContain('conflict with "kubectl": .spec.endpoint')
    await kubectl('apply --server-side --force-conflicts --field-manager=other -f -', body('https://b'))
    expect((await object('link served')).spec.endpoint).toBe('https://b')
    const managed = parse(await kubectl('get link served -o yaml --show-managed-fields'))
    expect(managed.metadata.managedFields.map((entry: { manager: string }) => entry.manager)).toContain('other')
  })

  it('diffs and dry-runs without writing', async () => {
    const changed = link('dry', 'endpoint: https://a')
    expect(await kubectl('apply --dry-run=server -f -', changed)).toContain('created (server dry run)')
    expect((await run(['get', 'link', 'dry'])).code).toBe(1)
  })

  it('edits', async () => {
    await kubectl('apply -f -', link('edited', 'endpoint: https://a'))
    const out = await kubectl('edit link edited', '', { KUBE_EDITOR: 'sed -i s#https://a#https://edited#' })
    expect(out).toContain('edited')
    expect((await object('link edited')).spec.endpoint).toBe('https://edited')
    await kubectl('apply -f -', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: edited}\ndata: {x: before}\n')
    await kubectl('edit configmap edited', '', { KUBE_EDITOR: 'sed -i s/before/after/' })
    expect((await object('cm edited')).data).toEqual({ x: 'after' })
  })

  it('patches in every way', async () => {
    await kubectl('apply -f -', link('patched', 'endpoint: https://a'))
    await run(['patch', 'link', 'patched', '--type=merge', '-p', '{"spec":{"intervalSeconds":90}}'])
    await run(['patch', 'link', 'patched', '--type=json', '-p', '[{"op":"add","path":"/spec/tags","value":{"a":"1"}}]'])
    expect((await object('link patched')).spec).toEqual({
      endpoint: 'https://a',
      intervalSeconds: 90,
      tags: { a: '1' },
    })
    await run([
      'patch',
      'link',
      'patched',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Ready"}}',
    ])
    expect(row(await kubectl('get links'), 'patched')[2]).toBe('Ready')
    await run(['patch', 'namespace', 'default', '-p', '{"metadata":{"labels":{"a":"b"}}}'])
    expect((await object('ns default')).metadata.labels.a).toBe('b')
    await kubectl('label link patched team=x')
    await kubectl('annotate link patched note=y')
    expect((await object('link patched')).metadata).toMatchObject({ labels: { team: 'x' }, annotations: { note: 'y' } })
    expect(await kubectl('get links -l team=x -o name')).toBe('link.test.example.io/patched\n')
  })

  it('replaces and creates from files', async () => {
    await kubectl('create -f -', link('replaced', 'endpoint: https://a'))
    expect((await run(['create', '-f', '-'], link('replaced', 'endpoint: https://a'))).err).toContain('AlreadyExists')
    await kubectl('replace -f -', link('replaced', 'endpoint: https://b'))
    expect((await object('link replaced')).spec.endpoint).toBe('https://b')
  })

  it('creates namespaces, secrets and configmaps by its own commands', async () => {
    await kubectl('create namespace made')
    await kubectl('create secret generic made -n made --from-literal=token=geheim')
    await kubectl('create configmap made -n made --from-literal=x=1')
    await kubectl('create serviceaccount made -n made')
    await kubectl('create deployment made -n made --image=i:1')
    expect((await object('secret made -n made')).data).toEqual({ token: 'Z2VoZWlt' })
    expect((await object('cm made -n made')).data).toEqual({ x: '1' })
    expect((await object('deploy made -n made')).spec.template.spec.containers[0].image).toBe('i:1')
    await kubectl('scale deployment made -n made --replicas=3')
    expect((await object('deploy made -n made')).spec.replicas).toBe(3)
    await kubectl('delete namespace made')
    expect((await run(['get', 'ns', 'made'])).code).toBe(1)
  })

  it('describes', async () => {
    await kubectl('apply -f -', link('described', 'endpoint: https://a'))
    const text = await kubectl('describe link described')
    expect(text).toMatch(/Name: +described/)
    expect(text).toMatch(/Endpoint: +https:\/\/a/)
    await server.objects.put({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'described.1', namespace: 'default' },
      involvedObject: { kind: 'Pod', name: 'described', namespace: 'default', uid: 'u1' },
      reason: 'Tested',
      message: 'seen by kubectl',
      type: 'Normal',
      count: 1,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:00Z',
      source: { component: 'suite' },
    })
    await server.objects.put({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'described', namespace: 'default', uid: 'u1' },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i:1' }] },
      status: {
        phase: 'Running',
        containerStatuses: [
          {
            name: 'c',
            ready: true,
            restartCount: 2,
            image: 'i:1',
            imageID: '',
            state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
          },
        ],
      },
    })
    await server.objects.put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1', labels: { 'node-role.kubernetes.io/worker': '' } },
      spec: {},
      status: {
        capacity: { cpu: '4', memory: '8Gi', pods: '110' },
        allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
        conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ok' }],
        nodeInfo: { kubeletVersion: 'v1.32.0' },
      },
    })
    const pod = await kubectl('describe pod described')
    expect(pod).toMatch(/Node: +n1/)
    expect(pod).toContain('seen by kubectl')
    const node = await kubectl('describe node n1')
    expect(node).toMatch(/Roles: +worker/)
    expect(node).toContain('described')
    expect(row(await kubectl('get nodes'), 'n1').slice(0, 3)).toEqual(['n1', 'Ready', 'worker'])
    expect(row(await kubectl('get pods -o wide'), 'described').slice(0, 4)).toEqual([
      'described',
      '1/1',
      'Running',
      '2',
    ])
    expect(await kubectl('describe ns default')).toMatch(/Status: +Active/)
    expect(await kubectl('describe secret,cm,deploy,sa,crd')).toContain('links.test.example.io')
    expect(await kubectl('get events')).toContain('seen by kubectl')
    expect(await kubectl('events')).toContain('seen by kubectl')
  })

  it('explains', async () => {
    expect(await kubectl('explain link')).toContain('A way to reach a cluster.')
    const field = await kubectl('explain link.spec.endpoint')
    expect(field).toContain('Where the API answers.')
    expect(field).toContain('<string>')
    expect(await kubectl('explain pods.spec.containers')).toMatch(/FIELD: containers/)
    expect(await kubectl('explain deployments --recursive')).toContain('template')
  })

  it('watches', async () => {
    const child: ChildProcess = spawn('kubectl', ['get', 'links', '-w', '--output-watch-events', '-l', 'watched=yes'], {
      env: environment(),
    })
    let out = ''
    const seen = (text: string) =>
      new Promise<void>((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`no ${text} in: ${out}`)), 10_000)
        const look = () => {
          if (!out.includes(text)) return
          clearTimeout(late)
          child.stdout?.off('data', look)
          resolve()
        }
        child.stdout?.on('data', look)
        look()
      })
    child.stdout?.on('data', (chunk: Buffer) => {
      out += chunk.toString()
    })
    try {
      const body = link('watched', 'endpoint: https://a').replace(
        'name: watched',
        'name: watched\n  labels: { watched: "yes" }',
      )
      await kubectl('apply -f -', body)
      await seen('ADDED')
      await kubectl('patch link watched --type=merge -p {"spec":{"endpoint":"https://c"}}')
      await seen('https://c')
      await kubectl('delete link watched')
      await seen('DELETED')
    } finally {
      const ended = once(child, 'exit')
      child.kill()
      await ended
    }
  })

  it('waits for a condition and for a deletion', async () => {
    await kubectl('wait --for=condition=Established crd/links.test.example.io --timeout=5s')
    await kubectl('apply -f -', link('waited', 'endpoint: https://a'))
    const waiting = kubectl('wait --for=delete link/waited --timeout=10s')
    await kubectl('delete link waited')
    await waiting
  })

  it('deletes one, several, all, and what does not exist not', async () => {
    for (const name of ['d1', 'd2', 'd3']) await kubectl('apply -f -', link(name, 'endpoint: https://a'))
    expect(await kubectl('delete link d1')).toContain('deleted')
    await kubectl('label link d2 d3 doomed=yes')
    await kubectl('delete links -l doomed=yes')
    expect((await run(['delete', 'link', 'd2'])).err).toContain('NotFound')
    expect(await kubectl('get links --ignore-not-found -l doomed=yes')).toBe('')
  })

  it('says who I am and what I may', async () => {
    expect(await kubectl('auth whoami -o jsonpath={.status.userInfo.username}')).toBe('tester')
    expect(await kubectl('auth can-i delete nodes')).toBe('yes\n')
    expect(await kubectl('auth can-i --list')).toContain('*.*')
  })

  it('prunes by its default list of kinds', async () => {
    const map = (name: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  labels: { app: pruned }\ndata: { a: b }\n---\n`
    const claim =
      'apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: kept\n  labels: { app: pruned }\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: { requests: { storage: 1Gi } }\n---\n'
    await kubectl('apply --prune -l app=pruned -f -', map('one') + map('two') + claim)
    const said = await kubectl('apply --prune -l app=pruned -f -', map('two'))
    expect(said).toContain('configmap/one pruned')
    expect(said).toContain('persistentvolumeclaim/kept pruned')
    expect(await kubectl('get configmaps,pvc -l app=pruned -o name')).toBe('configmap/two\n')
  })

  it('knows the kinds of Open Cluster Management by their short names, with their columns', async () => {
    for (const kind of ocmKinds) await server.objects.put(kind.crd({ converts: true }) as unknown as ApiObject)
    const items = ocmKinds.map((kind) => kind.definition.example)
    for (const name of ['west', 'team-a', 'open-cluster-management']) await kubectl(`create namespace ${name}`)
    const said = await kubectl('apply -f -', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
    expect(said.match(/ created$/gm)).toHaveLength(ocmKinds.length)
    expect(await kubectl('get mcl')).toMatch(
      /^NAME +HUB ACCEPTED +MANAGED CLUSTER URLS +JOINED +AVAILABLE +AGE\nwest +true /,
    )
    expect(await kubectl('get mclset,mclsetbinding,cma -A -o name')).toBe(
      [
        'managedclusterset.cluster.open-cluster-management.io/production',
        'managedclustersetbinding.cluster.open-cluster-management.io/production',
        'clustermanagementaddon.addon.open-cluster-management.io/helloworld',
        '',
      ].join('\n'),
    )
    expect(await kubectl('get mca -n west')).toMatch(/^NAME +AVAILABLE +DEGRADED +PROGRESSING\nhelloworld/)
    expect(
      await kubectl('get managedclusteraddons.v1alpha1.addon.open-cluster-management.io -n west -o name'),
    ).toContain('helloworld')
    expect(await kubectl('explain mcl.spec.taints.effect')).toContain('NoSelectIfNew')
  })

  it('shows what is only kept as well, and is told that it is', async () => {
    const policy =
      'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { name: quiet }\nspec: { podSelector: { matchLabels: { app: a } } }\n'
    const applied = await run(['apply', '-f', '-'], policy)
    expect(applied.out).toContain('networkpolicy.networking.k8s.io/quiet created')
    expect(applied.err).toContain('does not act on it')
    expect(await kubectl('get netpol')).toMatch(/^NAME +POD-SELECTOR +AGE\nquiet +app=a /)
    expect(await kubectl('api-resources --api-group=policy -o name')).toContain('poddisruptionbudgets.policy')
  })

  it('applies what charts bring, and changes it', async () => {
    const job = (image: string) =>
      `apiVersion: batch/v1\nkind: Job\nmetadata: { name: once }\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n        - { name: main, image: ${image} }\n`
    const cronJob = (image: string) =>
      `apiVersion: batch/v1\nkind: CronJob\nmetadata: { name: often }\nspec:\n  schedule: '@hourly'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n            - { name: main, image: ${image} }\n`
    const ingress =
      'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: front }\nspec:\n  rules:\n    - host: a.example\n'
    await kubectl('apply -f -', job('a:1'))
    const refused = await run(['apply', '-f', '-'], job('a:2'))
    expect(refused.err).toMatch(/^The Job "once" is invalid: spec\.template: .*: field is immutable$/m)
    await kubectl('apply -f -', cronJob('a:1'))
    await kubectl('apply -f -', cronJob('a:2'))
    expect((await object('cronjob often')).spec.jobTemplate.spec.template.spec.containers).toMatchObject([
      { name: 'main', image: 'a:2' },
    ])
    await kubectl('apply -f -', ingress)
    await kubectl('apply -f -', ingress.replace('a.example', 'b.example'))
    expect((await object('ingress front')).spec).toEqual({ rules: [{ host: 'b.example' }] })
    await kubectl('delete job/once cronjob/often ingress/front')
  })

  it('is warned that nothing runs a workload, and of nothing else', async () => {
    const { err } = await run(['create', 'deployment', 'web', '--image=nginx'])
    expect(err).toBe(
      'Warning: this API server keeps the Deployment and runs nothing: no controller and no node here starts its pods\n',
    )
    expect((await run(['get', 'deployment', 'web'])).err).toBe('')
    expect((await run(['delete', 'deployment', 'web'])).err).toBe('')
    expect((await run(['create', 'configmap', 'quiet'])).err).toBe('')
  })

  it('gets a token of a service account, which lets in as far as bindings say', async () => {
    await kubectl('create serviceaccount robot')
    const { code, out, err } = await run(['create', 'token', 'robot', '--duration=1h'])
    expect([code, err]).toEqual([0, ''])
    const token = out.trim()
    expect(token.split('.')).toHaveLength(3)
    const review = `apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: { token: ${token} }\n`
    const reviewed = async (text: string) => parse(await kubectl('create -o yaml -f -', text)).status
    const name = 'system:serviceaccount:default:robot'
    expect(await reviewed(review)).toMatchObject({ authenticated: true, user: { username: name } })
    expect(await reviewed(review.replace(token, `${token.slice(0, -2)}xx`))).toMatchObject({ authenticated: false })
    // The administrator's certificate or token stands in the kubeconfig; this one is asked as the robot.
    const asRobot = async () =>
      (
        await run([
          'get',
          'configmaps',
          '--server',
          `${listener.url}/clusters/east`,
          '--insecure-skip-tls-verify',
          '--token',
          token,
          '--kubeconfig',
          '/dev/null',
        ])
      ).err
    expect(await asRobot()).toContain(`User "${name}" cannot list resource "configmaps"`)
    await kubectl('create rolebinding robot --clusterrole=view --serviceaccount=default:robot')
    expect(await asRobot()).toBe('')
    await kubectl('delete rolebinding robot')
    expect(await asRobot()).toContain('cannot list resource')
    await kubectl('delete serviceaccount robot')
    expect(await asRobot()).toMatch(/must be logged in|Unauthorized/)
    expect((await run(['create', 'token', 'robot'])).err).toContain('serviceaccounts "robot" not found')
    await kubectl('create serviceaccount robot')
    expect((await run(['create', 'token', 'robot', '--duration=1m'])).err).toContain('less than 10 minutes')
    expect(await reviewed(review)).toMatchObject({ authenticated: false })
  })

  it.each(['readyz', 'livez', 'healthz'])('asks how it is: %s', async (root) => {
    expect(await kubectl(`get --raw /${root}`)).toBe('ok')
    const verbose = await kubectl(`get --raw /${root}?verbose`)
    expect(verbose).toMatch(/^\[\+\]ping ok\n\[\+\]log ok\n\[\+\]etcd ok\n/)
    expect(verbose).toMatch(new RegExp(`\n${root} check passed\n$`))
    expect(await kubectl(`get --raw /${root}/etcd`)).toBe('ok')
    expect(await kubectl(`get --raw /${root}?verbose&exclude=etcd`)).toContain('[+]etcd excluded: ok\n')
    expect((await run(['get', '--raw', `/${root}/none`])).code).toBe(1)
  })
})
