import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiListener, listenApi } from './listen.ts'
import { ApiServer } from './server.ts'

const helm = [process.env.HELM_ASSETS ?? '', ...(process.env.PATH ?? '').split(delimiter)]
  .map((folder) => join(folder, 'helm'))
  .find((path) => existsSync(path))

describe.skipIf(helm === undefined && process.env.CI_REQUIRE_ALL !== '1')('helm, from HELM_ASSETS or the path', () => {
  let dir: string
  let server: ApiServer
  let listener: ApiListener

  async function run(words: string): Promise<string> {
    if (helm === undefined) throw new Error('helm is missing: scripts/build-helm.sh builds it')
    const env = { ...process.env, HOME: dir, KUBECONFIG: join(dir, 'kubeconfig') }
    return (await promisify(execFile)(helm, words.split(' '), { cwd: dir, env, timeout: 30_000 })).stdout
  }
  const names = (group: string, version: string, plural: string) =>
    server.objects.list({ group, version, plural }, { namespace: 'default' }).map(({ metadata }) => metadata.name)

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'helm-'))
    server = await ApiServer.open({ storage: { kind: 'memory' } })
    listener = await listenApi({
      mounts: new Map([['', server]]),
      tokens: [{ token: 'helm-token', user: 'tester', groups: ['system:masters'] }],
    })
    const config = listener.kubeconfig({ context: 'hub', token: 'helm-token' })
    writeFileSync(join(dir, 'kubeconfig'), config, { mode: 0o600 })
    await run('create small')
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await listener[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  it('installs, changes, takes back and removes a chart', async () => {
    const deployment = () =>
      server.objects.get(
        { group: 'apps', version: 'v1', plural: 'deployments' },
        { name: 'web-small', namespace: 'default' },
      )
    const replicas = () => (deployment()?.spec as { replicas?: number } | undefined)?.replicas
    expect(await run('install web ./small --set ingress.enabled=true')).toContain('STATUS: deployed')
    expect(replicas()).toBe(1)
    expect(names('networking.k8s.io', 'v1', 'ingresses')).toEqual(['web-small'])
    expect(await run('upgrade web ./small --set replicaCount=3')).toContain('has been upgraded')
    expect(replicas()).toBe(3)
    expect(names('networking.k8s.io', 'v1', 'ingresses')).toEqual([])
    expect(JSON.parse(await run('history web -o json'))).toMatchObject([
      { revision: 1, status: 'superseded' },
      { revision: 2, status: 'deployed' },
    ])
    expect(await run('rollback web 1')).toContain('Rollback was a success')
    expect([replicas(), names('networking.k8s.io', 'v1', 'ingresses')]).toEqual([1, ['web-small']])
    expect(await run('uninstall web')).toContain('uninstalled')
    expect(deployment()).toBeUndefined()
    expect(JSON.parse(await run('list -a -o json'))).toEqual([])
  })
})
