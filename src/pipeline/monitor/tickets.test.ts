import { describe, expect, it } from 'vitest'
import { OwnNames, Tickets } from './tickets.ts'

const caller = { userId: 'aB3dE6', isAdmin: false, expiresAt: Number.POSITIVE_INFINITY }

function opened(secret = 'shared', names = new OwnNames()) {
  const time = { now: 1_000_000 }
  const clock = { now: () => time.now, sleep: () => Promise.resolve() }
  return { time, names, tickets: new Tickets({ secret, names, clock }) }
}

describe('a ticket', () => {
  it('is good once, in whichever process that shares the secret and the names', async () => {
    const one = opened()
    const other = opened('shared', one.names)
    const { ticket, expiresAt } = await one.tickets.issue(caller)
    expect(expiresAt).toBe(1_030_000)
    const answers = await Promise.all([other.tickets.redeem(ticket), one.tickets.redeem(ticket)])
    expect(answers.filter((answer) => answer !== undefined)).toEqual([caller])
  })

  it('is good for half a minute, and no longer than its token', async () => {
    const { time, tickets } = opened()
    const late = await tickets.issue(caller)
    const short = await tickets.issue({ ...caller, expiresAt: time.now + 5000 })
    time.now += 5000
    expect(await tickets.redeem(short.ticket)).toBeUndefined()
    time.now += 25_000
    expect(await tickets.redeem(late.ticket)).toBeUndefined()
  })

  it('is no ticket where it was sealed with another secret, changed, or never issued', async () => {
    const { names, tickets } = opened()
    const foreign = await opened('another', names).tickets.issue({ ...caller, isAdmin: true })
    const { ticket } = await tickets.issue(caller)
    const [text = '', seal = ''] = ticket.split('.')
    const raised = Buffer.from(text, 'base64url').toString().replace('false', 'true')
    for (const forged of [foreign.ticket, `${Buffer.from(raised).toString('base64url')}.${seal}`, text, '', '.', 'x.y'])
      expect(await tickets.redeem(forged)).toBeUndefined()
    expect(await tickets.redeem(ticket)).toEqual(caller)
  })

  it('of many that nobody used is forgotten, the oldest first', async () => {
    const { tickets } = opened()
    const first = await tickets.issue(caller)
    for (let more = 0; more < 1000; more++) await tickets.issue(caller)
    expect(await tickets.redeem(first.ticket)).toBeUndefined()
  })

  it('outlives however many somebody else asks for', async () => {
    const { tickets } = opened()
    const other = { ...caller, userId: 'other' }
    const { ticket } = await tickets.issue(other)
    for (let more = 0; more < 10_000; more++) await tickets.issue(caller)
    expect(await tickets.redeem(ticket)).toEqual(other)
  })

  it('of very many users is forgotten, the oldest first', async () => {
    const names = new OwnNames()
    for (let user = 0; user <= 50_000; user++) await names.set(`ticket-${user}`, 30_000, `user-${user}`)
    expect(await names.take('ticket-0')).toBe(false)
    expect(await names.take('ticket-1')).toBe(true)
  })
})
