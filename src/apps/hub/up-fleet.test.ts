import { describe, expect, it } from 'vitest'
import { chooseFleet, fleetStartWords, type UpFleetWish } from './up-fleet.ts'

const own = new Map([
  ['east', '/fleet.yaml'],
  ['by-hand', undefined],
])
const wish = (over: Partial<UpFleetWish>): UpFleetWish => ({
  demo: false,
  given: undefined,
  isNamed: false,
  known: { simulated: [], own: new Map() },
  dataDir: 'data',
  ...over,
})
const of = (path: string) => ({ paths: [path], members: [], leftOut: [] })

describe('chooseFleet', () => {
  it('starts the demo in an empty folder and in one that was a demo, with clusters of people beside it too', () => {
    expect(chooseFleet(wish({}))).toEqual({ kind: 'demo' })
    expect(chooseFleet(wish({ known: { simulated: ['staging'], own } }))).toEqual({ kind: 'demo' })
  })

  it('goes on with the clusters of a folder where no kubeconfig is given, and says so', () => {
    const fleet = chooseFleet(wish({ known: { simulated: [], own } }))
    expect(fleet).toEqual({ kind: 'folder', clusters: 2, unread: [] })
    expect(fleetStartWords(fleet, false)).toBe('Starting: no kubeconfig given: the 2 clusters of this folder go on …')
  })

  it('adds the usual kubeconfig to a folder of another only where it is named', () => {
    const known = { simulated: [], own }
    expect(chooseFleet(wish({ known, given: of('/home/me/.kube/config') }))).toMatchObject({
      kind: 'folder',
      unread: ['/home/me/.kube/config'],
    })
    expect(chooseFleet(wish({ known, given: of('/home/me/.kube/config'), isNamed: true })).kind).toBe('kubeconfig')
    expect(chooseFleet(wish({ known, given: of('/fleet.yaml') })).kind).toBe('kubeconfig')
  })

  it('refuses --demo among the clusters of people', () => {
    expect(() => chooseFleet(wish({ demo: true, known: { simulated: [], own } }))).toThrow(
      /data holds 2 clusters of your own \(east, by-hand\).*--data-dir/,
    )
  })
})
