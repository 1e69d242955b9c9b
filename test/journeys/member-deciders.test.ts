import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type KubernetesHub, kubectlOf, kubernetesHub, noKubernetesHub } from '../member-hub.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const why = noKubernetesHub()

/** A real kube-apiserver evaluates the RBAC; the role `api` runs with what `deploy/` grants its account. */
describe.skipIf(why !== undefined)(
  `who decides about members of a hub on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`,
  () => {
    let folder: string
    let members: Running
    let agent: Running | undefined
    let hub: KubernetesHub
    let kubectl: ReturnType<typeof kubectlOf>

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'deciders-'))
      const size = ['--clusters', '1', '--nodes', '2', '--pods', '10']
      members = clusterpulse(['simulate', ...size, '--kubeconfig-out', join(folder, 'members')])
      await members.says(/kubeconfig in/, 120_000)
      const env = { TOKEN_REVIEW: 'true', ADMIN_USERS: 'system:serviceaccount:default:bob' }
      hub = await kubernetesHub(folder, { receivesAgents: true, env })
      kubectl = kubectlOf(hub.kubeconfig)
      await kubectl(['apply', '-f', 'deploy/components/token-review/role.yaml'])
      for (const name of ['ann', 'bob']) await kubectl(['create', 'serviceaccount', name])
    })
    afterAll(async () => {
      for (const one of [agent, hub, members]) await one?.[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    })

    const tokenOf = async (name: string) => (await kubectl(['create', 'token', name])).trim()
    async function ask(token: string, path: string, body?: object) {
      const answer = await fetch(`${hub.page}/api/v2/members/${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    }

    it('is said by RBAC alone: not by the page’s own administrators, and at once when a binding comes or goes', async () => {
      const connect = clusterpulse(['connect', 'edge', '--kubeconfig', hub.kubeconfig])
      expect(await connect.ended(), connect.stderr()).toBe(0)
      const token = /npx clusterpulse join (\S+)/.exec(connect.stdout())?.[1] ?? ''
      const machine = ['--kubeconfig', join(folder, 'members'), '--buffer-dir', join(folder, 'edge')]
      agent = clusterpulse(['join', token, ...machine], { env: { HEALTH_ADDRESS: '127.0.0.1:0' } })
      await eventually(
        async () => agent?.stderr() ?? '',
        (said) => /waiting: /.test(said),
        180_000,
      )
      const [ann, bob] = [await tokenOf('ann'), await tokenOf('bob')]
      // bob administrates the page, and sees who asks there; he may not decide.
      const looked = await fetch(`${hub.page}/api/v2/rows/memberrequests`, {
        headers: { authorization: `Bearer ${bob}` },
      })
      expect(looked.status).toBe(200)
      for (const who of [ann, bob]) {
        expect(await ask(who, 'decisions')).toMatchObject({
          status: 200,
          body: { may: [], requests: [], rule: 'rights' },
        })
        expect(await ask(who, 'edge/accept', {})).toMatchObject({ status: 403, body: { code: 'rights_missing' } })
      }
      const role = 'clusterrolebinding/ann-decides'
      const bind = ['create', 'clusterrolebinding', 'ann-decides', '--clusterrole=clusterpulse-member-deciders']
      await kubectl([...bind, '--serviceaccount=default:ann'])
      const told = await eventually(
        () => ask(ann, 'decisions?member=edge'),
        ({ body }) => (body.may as string[]).includes('accept'),
        60_000,
      )
      expect(told.body).toMatchObject({ may: ['accept', 'deny', 'detach'], requests: [{ member: 'edge' }] })
      expect(told.body.lacks).toEqual({ revoke: ['list secrets in clusterpulse', 'delete secrets in clusterpulse'] })
      const accepted = await ask(ann, 'edge/accept', {})
      expect([accepted.status, accepted.body]).toEqual([
        200,
        { done: [expect.stringMatching(/is approved/), 'edge is accepted as a member'] },
      ])
      expect(await kubectl(['get', 'managedcluster', 'edge', '-o', 'jsonpath={.spec.hubAcceptsClient}'])).toBe('true')
      expect((await ask(bob, 'edge/deny', {})).status).toBe(403)
      await kubectl(['delete', role])
      await eventually(
        () => ask(ann, 'decisions?member=edge'),
        ({ body }) => (body.may as string[]).length === 0,
        60_000,
      )
      expect((await ask(ann, 'edge/detach', {})).status).toBe(403)
      const account = 'system:serviceaccount:default:ann'
      const trail = await eventually(
        () => hub.trail(),
        (entries) => entries.some(({ route, username }) => route === 'cluster_accepted' && username === account),
      )
      const mine = trail.filter(({ kind, username }) => kind === 'administration' && username === account)
      const resource = 'managedcluster edge'
      expect(mine).toMatchObject([
        { route: 'request_approved', resource },
        { route: 'cluster_accepted', resource },
      ])
    })

    it('makes join tokens with a role that reads no Secret, and accepts ahead with that of who decides', async () => {
      await kubectl(['create', 'serviceaccount', 'eve'])
      const admin = await readFile(hub.kubeconfig, 'utf8')
      const own = join(folder, 'eve.yaml')
      await writeFile(own, admin.replace(/token: .*/, `token: ${await tokenOf('eve')}`), { mode: 0o600 })
      const connects = async (...args: string[]) => {
        const run = clusterpulse(['connect', ...args, '--kubeconfig', own])
        return { code: await run.ended(), out: run.stdout(), err: run.stderr() }
      }
      const refused = await connects('north')
      expect(refused.code).toBe(1)
      expect(refused.err).toMatch(/forbidden/)
      const bind = ['create', 'rolebinding', 'eve-connects', '--role=clusterpulse-connectors']
      await kubectl(['-n', 'clusterpulse', ...bind, '--serviceaccount=default:eve'])
      expect(await connects('north')).toMatchObject({ code: 0, out: expect.stringContaining('cpj1_') })
      const manifest = await connects('north', '-o', 'manifest')
      expect([manifest.code, manifest.out.includes('kind: Deployment')], manifest.err).toEqual([0, true])
      const may = (...words: string[]) =>
        kubectl(['auth', 'can-i', ...words, '-n', 'clusterpulse', '--as=system:serviceaccount:default:eve']).catch(
          (error: unknown) => String(error),
        )
      expect(await may('get', 'secrets')).toMatch(/no$/m)
      expect(await may('list', 'secrets')).toMatch(/no$/m)

      const ahead = await connects('north', '--accept')
      expect([ahead.code, /managedclusters/.test(ahead.err)], ahead.err).toEqual([1, true])
      const decide = ['create', 'clusterrolebinding', 'eve-decides', '--clusterrole=clusterpulse-member-deciders']
      await kubectl([...decide, '--serviceaccount=default:eve'])
      const accepted = await connects('north', '--accept')
      expect(accepted.code, accepted.err).toBe(0)
      expect(await kubectl(['get', 'managedcluster', 'north', '-o', 'jsonpath={.spec.hubAcceptsClient}'])).toBe('true')
    })
  },
)
