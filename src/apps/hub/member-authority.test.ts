import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ApiServer, listenApi } from '#apiserver'
import type { AuditEntry } from '#audit'
import { createKubeClient, secrets, whole } from '#kube'
import { createLogger, Metrics } from '#runtime'
import { createSealer, localKeys } from '#sealing'
import { auditEntryOf, auditEntryOfAuthority, memberAuthority, signOnKubernetes } from './member-authority.ts'

const asked = { name: 'east-x7k2m', username: 'system:bootstrap:abcdef' }

it('the audit trail names who asked for a certificate, for which member it was signed, and why one was refused', () => {
  const member = { cluster: 'east', agent: 'one' }
  const signed = auditEntryOf({ ...asked, result: { kind: 'signed', member, serial: '01ab', notAfterMs: 0 } }, 5)
  expect(signed).toMatchObject({
    at: 5,
    kind: 'administration',
    requestId: 'east-x7k2m',
    username: 'system:bootstrap:abcdef',
    route: 'certificate_signed',
    resource: 'managedcluster east',
    status: 200,
    reason: 'certificate 01ab for agent one until 1970-01-01T00:00:00.000Z',
  })
  const refused = auditEntryOf(
    { ...asked, result: { kind: 'failed', message: 'two organisations', cluster: 'east' } },
    5,
  )
  expect(refused).toMatchObject({
    kind: 'denial',
    requestId: 'east-x7k2m',
    username: 'system:bootstrap:abcdef',
    route: 'certificate_refused',
    resource: 'managedcluster east', // `audit show --member` has it
    status: 403,
    reason: 'two organisations',
  })
  const nameless = { kind: 'failed', message: 'no label' } as const
  for (const cluster of [undefined, '', 'no name\nat all'])
    expect(auditEntryOf({ ...asked, result: { ...nameless, cluster } }, 5).resource).toBe(
      'certificatesigningrequest east-x7k2m',
    )
})

it('the audit trail says which CA was ended, and which could not be and why', () => {
  const ended = { act: 'authority_ended', id: '0123' } as const
  expect(auditEntryOfAuthority(ended, 5)).toMatchObject({ route: 'authority_ended', status: 200 })
  expect(auditEntryOfAuthority({ ...ended, trouble: 'no CA "0123" is trusted' }, 5)).toMatchObject({
    kind: 'administration',
    route: 'authority_ended',
    status: 422,
    reason: 'an annotation of the ConfigMap asks for it ("0123"): not done, no CA "0123" is trusted',
  })
})

it('the CA in the data folder is kept while the hub runs; one that a start makes in place of a lost one is told', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'member-authority-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const folder = join(dataDir, 'control-plane', 'authority')
  const config = { certificateLifeMs: 86_400_000 }
  const start = () => memberAuthority({ dataDir, config, logger: createLogger('silent') })
  const sealer = createSealer(localKeys([Buffer.alloc(32, 1)]))
  const first = start()
  mkdirSync(join(dataDir, 'control-plane'))
  await first.open(sealer)
  expect(first.madeAnew(), 'a hub that is new had none').toBeUndefined()
  writeFileSync(join(dataDir, 'control-plane', 'admin.token'), '')
  await first.keeping.start(new AbortController().signal)
  rmSync(folder, { recursive: true })
  await expect.poll(() => readdirSync(folder)).toHaveLength(2)
  await first.keeping.stop()
  const again = start()
  await again.open(sealer)
  expect(again.madeAnew()).toBeUndefined()
  rmSync(folder, { recursive: true })
  const anew = start()
  const made = await anew.open(sealer)
  expect(anew.madeAnew()).toEqual({ act: 'authority_made', id: made.roots()[0]?.id.slice(0, 16) })
  expect(auditEntryOfAuthority(anew.madeAnew()!, 5)).toMatchObject({
    ...{ kind: 'administration', route: 'authority_made', status: 200 },
    reason: expect.stringMatching(/^the CA [0-9a-f]{16} is made, as none was kept any more/),
  })
})

it('the CA in a Secret is kept while the manager runs; what is harmed is told in the ConfigMap, what is made anew in the trail', async () => {
  const server = await ApiServer.open({ storage: { kind: 'memory' } })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const grant = { token: 'word', user: 'admin', groups: ['system:masters'] }
  const listener = await listenApi({ tokens: [grant], mounts: new Map([['', server]]) })
  onTestFinished(() => listener[Symbol.asyncDispose]())
  const credentials = { kind: 'token' as const, token: grant.token }
  const kube = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  onTestFinished(() => kube[Symbol.asyncDispose]())
  const trail: AuditEntry[] = []
  const logger = createLogger('silent')
  const starting = () => {
    const end = new AbortController()
    const running = signOnKubernetes(
      {
        ...{ config: { certificateLifeMs: 86_400_000 }, hub: () => kube, namespace: 'default', logger },
        ...{ trail: () => ({ record: (entry) => void trail.push(entry) }), metrics: new Metrics() },
      },
      end.signal,
    )
    return async () => {
      end.abort()
      await running
    }
  }
  const key = { namespace: 'default', name: 'hub-authority' }
  const secret = async () => (await kube.get(whole(secrets), key))?.data as Record<string, string> | undefined
  const configMap = () => kube.request('GET', '/api/v1/namespaces/default/configmaps/hub-authority').catch(() => ({}))
  const slow = { timeout: 40_000, interval: 250 }
  let stop = starting()
  await expect.poll(configMap, slow).toMatchObject({ data: { authorities: expect.stringMatching(/ signs; /) } })
  const kept = await secret()
  const half = Buffer.from(kept?.['authority.json'] ?? '', 'base64')
    .subarray(0, 500)
    .toString('base64')
  await kube.patch(whole(secrets), key, { data: { 'authority.json': half } }, { kind: 'merge' })
  await expect.poll(secret, slow).toEqual(kept)
  await stop()

  await kube.patch(whole(secrets), key, { data: { 'authority.json': half } }, { kind: 'merge' })
  stop = starting()
  const trouble = {
    'clusterpulse.io/trouble': expect.stringMatching(/^members that are approved wait .*Secret default/),
  }
  await expect.poll(configMap, slow).toMatchObject({ metadata: { annotations: trouble } })
  await kube.patch(whole(secrets), key, { data: kept }, { kind: 'merge' })
  await expect
    .poll(configMap, slow)
    .not.toMatchObject({ metadata: { annotations: { 'clusterpulse.io/trouble': expect.anything() } } })
  await stop()
  expect(trail).toEqual([])

  await kube.delete(whole(secrets), key)
  stop = starting()
  await expect.poll(() => trail, slow).toMatchObject([{ route: 'authority_made', status: 200 }])
  expect(await secret()).not.toEqual(kept)
  await stop()
})
