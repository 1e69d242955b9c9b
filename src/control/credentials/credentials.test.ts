import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import { annotateCommand, secretFor } from './annotations.ts'
import { type Destination, destinationOf } from './destination.ts'
import { CredentialLedger } from './ledger.ts'

const serverOf = (endpoint: string) => (endpoint.includes('://') ? endpoint : `https://${endpoint}`)
const WEST = 'https://west:6443'
const EVIL = 'https://evil:6443'

const aSecret = (over: { version?: string; annotations?: Record<string, string>; name?: string } = {}) =>
  secretFor({
    name: over.name ?? 'west-credentials',
    namespace: 'fleet',
    uid: `uid-of-${over.name ?? 'west-credentials'}`,
    resourceVersion: over.version ?? '1',
    ...(over.annotations && { annotations: over.annotations }),
  })

function aConnection(
  name: string,
  endpoint: string,
  over: Partial<KubeObject> & { at?: number; secret?: string } = {},
) {
  const { at = 0, secret = 'west-credentials', spec, ...rest } = over
  return {
    metadata: { name, namespace: 'fleet', generation: 1, creationTimestamp: new Date(at * 1000).toISOString() },
    spec: { endpoint, credentialsRef: { name: secret }, ...(spec as object) },
    ...rest,
  }
}

function aLedger(...items: KubeObject[]): CredentialLedger {
  const ledger = new CredentialLedger('ClusterConnection', serverOf)
  ledger.see({ type: 'reset', items, resourceVersion: '1' })
  return ledger
}

const ask = (connection: string, to: Destination | string, secret = aSecret(), carried?: Destination) => ({
  connection,
  secret,
  destination: typeof to === 'string' ? destinationOf(to) : to,
  ...(carried && { carried }),
})

describe('credentials', () => {
  it('go to the first that accepts them, and then nowhere else', () => {
    const ledger = aLedger(aConnection('west', WEST))
    expect(ledger.hold(ask('west', WEST))).toBeUndefined()
    expect(ledger.accept(ask('west', WEST))).toEqual({
      secret: 'fleet/west-credentials',
      uid: 'uid-of-west-credentials',
      resourceVersion: '1',
      endpoint: WEST,
    })
    expect(ledger.hold(ask('west', 'https://WEST:6443/some/path'))).toBeUndefined()
    for (const elsewhere of [EVIL, 'https://west', 'http://west:6443', destinationOf(WEST, 'http://evil:3128')]) {
      expect(ledger.hold(ask('west', elsewhere))).toMatchObject({ reason: 'EndpointNotAccepted' })
    }
    expect(ledger.hold(ask('west', EVIL))?.message).toBe(
      `credentials of Secret fleet/west-credentials are held back from ${EVIL}: ${WEST} was the first to accept them (ClusterConnection west); if they are meant for it, run: kubectl annotate secret west-credentials -n fleet --overwrite clusterpulse.io/endpoint=${EVIL},${WEST}`,
    )
  })

  it('are free again when the Secret changes, and then keep to the next one', () => {
    const ledger = aLedger(aConnection('west', WEST))
    ledger.accept(ask('west', WEST))
    const changed = aSecret({ version: '2' })
    expect(ledger.hold(ask('west', EVIL, changed))).toBeUndefined()
    ledger.accept(ask('west', EVIL, changed))
    expect(ledger.hold(ask('west', WEST, changed))).toMatchObject({ reason: 'EndpointNotAccepted' })
  })

  it.each([
    ['another connection', (ledger: CredentialLedger) => ledger.hold(ask('evil', EVIL))],
    [
      'a connection that was turned to another Secret and back',
      (ledger: CredentialLedger) => {
        const away = { ...ledger.accept(ask('west', EVIL, aSecret({ name: 'mine' }))) }
        ledger.see({ type: 'modified', object: aConnection('west', EVIL, { status: { credentials: away } }) })
        return ledger.hold(ask('west', EVIL))
      },
    ],
    [
      'one that was deleted and made anew',
      (ledger: CredentialLedger) => {
        ledger.see({ type: 'deleted', object: aConnection('west', WEST) })
        ledger.see({ type: 'added', object: aConnection('west', EVIL, { at: 9 }) })
        return ledger.hold(ask('west', EVIL))
      },
    ],
    [
      'a Secret of the same content under the reference of another connection',
      (ledger: CredentialLedger) => {
        ledger.see({ type: 'added', object: aConnection('evil', EVIL, { at: -9 }) })
        return ledger.hold(ask('evil', EVIL))
      },
    ],
  ])('are not had by way of %s', (_, attack) => {
    const ledger = aLedger(aConnection('west', WEST))
    ledger.accept(ask('west', WEST))
    expect(attack(ledger)).toMatchObject({ reason: 'EndpointNotAccepted' })
  })

  it('wait for the connection that was declared first, as long as nobody accepted them', () => {
    const ledger = aLedger(aConnection('west', WEST), aConnection('evil', EVIL, { at: 1 }))
    expect(ledger.hold(ask('evil', EVIL))).toMatchObject({
      reason: 'EarlierConnectionFirst',
      message: expect.stringContaining(`ClusterConnection west, declared before, names the same Secret for ${WEST}`),
    })
    expect(ledger.hold(ask('evil', WEST))).toBeUndefined()
    expect(ledger.hold(ask('west', WEST))).toBeUndefined()
  })

  it('go on to where each of several connections had them accepted, also after the Secret is renewed', () => {
    const accepted = (endpoint: string) => ({
      status: { credentials: { ...aLedger().accept(ask('any', endpoint)) } },
    })
    const east = 'https://east:6443'
    const ledger = aLedger(
      aConnection('west', WEST, accepted(WEST)),
      aConnection('east', east, { at: 1, ...accepted(east) }),
    )
    const renewed = aSecret({ version: '2' })
    for (const secret of [aSecret(), renewed]) {
      expect(ledger.hold(ask('west', WEST, secret))).toBeUndefined()
      expect(ledger.hold(ask('east', east, secret))).toBeUndefined()
      ledger.accept(ask('west', WEST, secret))
    }
    expect(ledger.hold(ask('east', EVIL, renewed))).toMatchObject({ reason: 'EndpointNotAccepted' })
  })

  it('count as accepted where they were before acceptances were kept, unless the connection changed since', () => {
    const said = (observedGeneration: number) => ({
      status: { conditions: [{ type: 'CredentialsValid', status: 'True', reason: 'Accepted', observedGeneration }] },
    })
    const before = aLedger(aConnection('west', WEST, said(1)), aConnection('evil', EVIL, { at: -1 }))
    expect(before.hold(ask('west', WEST))).toBeUndefined()
    expect(before.hold(ask('evil', EVIL))).toMatchObject({ reason: 'EndpointNotAccepted' })
    expect(
      aLedger(aConnection('west', EVIL, said(0)), aConnection('old', WEST, { at: -1 })).hold(ask('west', EVIL)),
    ).toMatchObject({
      reason: 'EarlierConnectionFirst',
    })
  })

  it('go where the annotation says, whoever accepted them, and nowhere else', () => {
    const ledger = aLedger(aConnection('west', WEST))
    const annotated = aSecret({ annotations: { 'clusterpulse.io/endpoint': 'new:6443, https://WEST' } })
    ledger.accept(ask('west', EVIL, annotated))
    expect(ledger.hold(ask('west', 'https://new:6443', annotated))).toBeUndefined()
    expect(ledger.hold(ask('west', 'https://west:443/', annotated))).toBeUndefined()
    expect(ledger.hold(ask('west', EVIL, annotated))).toMatchObject({ reason: 'EndpointNotAnnotated' })
    const proxied = destinationOf('https://new:6443', 'http://proxy:3128')
    expect(ledger.hold(ask('west', proxied, annotated))?.message).toMatch(
      /no proxy.*clusterpulse\.io\/endpoint=https:\/\/new:6443 clusterpulse\.io\/proxy=http:\/\/proxy:3128$/,
    )
    const withProxy = aSecret({
      annotations: { 'clusterpulse.io/endpoint': 'new:6443', 'clusterpulse.io/proxy': 'http://proxy:3128' },
    })
    expect(ledger.hold(ask('west', proxied, withProxy))).toBeUndefined()
    expect(ledger.hold(ask('west', WEST, aSecret({ annotations: { 'clusterpulse.io/endpoint': '' } })))).toMatchObject({
      reason: 'EndpointNotAnnotated',
    })
  })

  it('of a kubeconfig go where it leads itself, and through no other proxy', () => {
    const ledger = aLedger(aConnection('west', 'https://ignored'))
    const carried = destinationOf(WEST)
    ledger.accept(ask('west', WEST, aSecret(), carried))
    expect(
      ledger.hold(ask('west', 'https://moved:6443', aSecret({ version: '2' }), destinationOf('https://moved:6443'))),
    ).toBeUndefined()
    expect(ledger.hold(ask('west', destinationOf(WEST, 'http://evil'), aSecret(), carried))).toMatchObject({
      reason: 'EndpointNotAccepted',
    })
  })

  it('are never in what is said, nor is the password of a proxy', () => {
    const ledger = aLedger(aConnection('west', WEST))
    ledger.accept(ask('west', WEST))
    const held = ledger.hold(ask('west', destinationOf('https://u:s3cret@evil', 'http://u:s3cret@proxy:1')))
    expect(held?.message).toContain('https://evil through the proxy http://proxy:1')
    expect(held?.message).not.toContain('s3cret')
  })

  it('have a command that a shell reads as one, whatever stands in an address', () => {
    fc.assert(
      fc.property(fc.string(), (host) => {
        const command = annotateCommand(aSecret(), [destinationOf(`https://${host}`, `http://${host}`)])
        const bare = command.replace(/'(?:[^']|'\\'')*'/g, '')
        expect(bare).toMatch(/^[A-Za-z0-9.:/,=_ -]*$/)
      }),
    )
  })
})
