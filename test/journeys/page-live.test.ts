import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { TableRow } from '#model'
import { slowness } from '../../src/platform/runtime/testing/slowness.ts'
import { buildPage, noBrowser } from '../../web/testing/browser.ts'
import { complaintsOf, excessAt320 } from '../page/axe.ts'
import { aCluster } from '../page/clusters.ts'
import { aCatalog, claims, collected, withTables } from '../page/declared.ts'
import { PageHub } from '../page/hub.ts'
import { patient } from '../page/shown.ts'
import { Visits } from '../page/visits.ts'

const suite = noBrowser === undefined ? 'rows on the page' : `rows on the page (skipped: ${noBrowser})`
const row = (name: string, usedPercent: number): TableRow => ({
  ...{ namespace: 'shop', name, labels: {} },
  values: { phase: 'Bound', usedPercent },
})

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let visits: Visits
  let hub: PageHub
  let base: string
  beforeAll(async () => {
    built = buildPage()
    visits = await Visits.open()
  })
  afterAll(async () => {
    await visits?.[Symbol.asyncDispose]()
    built?.[Symbol.dispose]()
  })
  beforeEach(async () => {
    hub = await PageHub.open({ root: built.root, catalog: await aCatalog(claims) })
    base = await hub.gateway.start()
    await hub.fill([west([row('carts', 20), row('orders', 30), row('stock', 40)])])
  })
  afterEach(async () => {
    const complaints = await visits.leave()
    await hub[Symbol.asyncDispose]()
    expect(complaints).toEqual([])
  })

  const west = (rows: readonly TableRow[]) =>
    withTables(aCluster('west', hub.now(), { ageMs: 0, rounds: 2 }), collected(claims, rows))
  const names = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()
  const asked = () => hub.gateway.requests.filter((path) => /\/rows\/pvc(\?|$)/.test(path)).length
  const path = '/types/pvc?view=rows&sort=-usedPercent'

  it('come, move and go as the stream tells them, and nobody asks for them', async () => {
    const page = await visits.visit(`${base}/types/pvc?view=rows`)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'orders', 'stock'])
    await expect.poll(() => hub.gateway.requests.some((path) => path.includes('rows=pvc')), patient).toBe(true)
    // What is read now and then may fall into one of the changes, not into each.
    let read = 1
    for (let used = 99; read !== 0 && used > 93; used--) {
      // The last look before the stream tells the rows is over.
      let before = -1
      while (before !== asked()) {
        before = asked()
        await page.waitForTimeout(2000)
      }
      await hub.put(west([row('carts', used), row('orders', 30), row('stock', 40)]))
      await page.getByText(String(used), { exact: false }).first().waitFor()
      read = asked() - before
    }
    expect(read).toBe(0)
    await hub.put(west([row('carts', 99), row('new', 1), row('stock', 40)]))
    await expect.poll(() => names(page), patient).toEqual(['carts', 'new', 'stock'])
  })

  it('are on screen within a second of the batch that moved them', async () => {
    const page = await visits.visit(`${base}/types/pvc?view=rows`)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'orders', 'stock'])
    await expect.poll(() => hub.gateway.requests.some((path) => path.includes('rows=pvc')), patient).toBe(true)
    const times: number[] = []
    for (let place = 0; place < 5; place++) {
      const name = `row-${place}`
      const since = performance.now()
      await hub.put(west([row('carts', 20), row(name, 30), row('stock', 40)]))
      await page.locator('tbody [data-row-link]', { hasText: name }).waitFor()
      times.push(performance.now() - since)
    }
    console.log(`on screen after ${times.map(Math.round).join(', ')} ms`)
    expect(Math.min(...times)).toBeLessThan(1000)
  })

  it('stand still under the pointer', async () => {
    const page = await visits.visit(`${base}${path}`)
    await expect.poll(() => names(page), patient).toEqual(['stock', 'orders', 'carts'])
    await page.locator('tbody tr').nth(1).hover()
    await hub.put(west([row('carts', 90), row('orders', 30), row('stock', 40)]))
    await page.getByText('order held while you read').waitFor()
    expect(await names(page)).toEqual(['stock', 'orders', 'carts'])
    await page.mouse.move(0, 0)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'stock', 'orders'])
  })

  it('stand in their order as soon as nobody is at one of them: a click, or the heads of the columns, hold nothing', async () => {
    const page = await visits.visit(`${base}${path}`)
    await expect.poll(() => names(page), patient).toEqual(['stock', 'orders', 'carts'])
    await page.locator('tbody tr').nth(1).locator('td').last().click()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Used', exact: false }).first().click()
    await expect.poll(() => names(page), patient).toEqual(['carts', 'orders', 'stock'])
    // The pointer is at the heads still.
    await hub.put(west([row('carts', 90), row('orders', 30), row('stock', 40)]))
    await expect.poll(() => names(page), patient).toEqual(['orders', 'stock', 'carts'])
    expect(await page.getByText('order held while you read').count()).toBe(0)
  })

  it('stand still while text of them is selected, and say so', async () => {
    const page = await visits.visit(`${base}${path}`)
    await expect.poll(() => names(page), patient).toEqual(['stock', 'orders', 'carts'])
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('tbody tr td'))")
    await hub.put(west([row('carts', 90), row('orders', 30), row('stock', 40)]))
    await page.getByText('order held while you read').waitFor()
    expect(await names(page)).toEqual(['stock', 'orders', 'carts'])
    await page.evaluate('getSelection().removeAllRanges()')
    await expect.poll(() => names(page), patient).toEqual(['carts', 'stock', 'orders'])
  })

  it('stand in their order, however many are loaded, and those beyond what the stream tells are read again', async () => {
    const count = 2400
    const many = (changed: Readonly<Record<number, number>> = {}) =>
      Array.from({ length: count }, (_, at) => row(`row-${String(at).padStart(4, '0')}`, changed[at] ?? 80 - at / 100))
    await hub.put(west(many()))
    const page = await visits.visit(`${base}${path}`)
    await expect.poll(async () => (await names(page))[0], patient).toBe('row-0000')
    const box = page.locator('.table-scroll')
    const scrollTo = (top: number) => box.evaluate((element, to) => element.scrollTo(0, to), top)
    // As far as rows are loaded, further and further.
    await expect
      .poll(async () => {
        await box.evaluate((element) => element.scrollTo(0, element.scrollHeight))
        return page.getByText('loaded, more as you scroll').count()
      }, patient)
      .toBe(0)
    await scrollTo(0)
    await hub.put(west(many({ 700: 99 })))
    await expect.poll(async () => (await names(page))[0], patient).toBe('row-0700')
    await hub.put(west(many({ 700: 99, 2000: 98, 2300: 1 })))
    await expect.poll(async () => (await names(page)).slice(0, 2), patient).toEqual(['row-0700', 'row-2000'])
    await scrollTo(200_000)
    await expect.poll(async () => (await names(page)).at(-1), patient).toBe('row-2300')
  })

  it.each([
    ['in their order', '/types/pvc?view=rows'],
    ['by what moves', path],
  ])('are on screen within a second wherever somebody has scrolled to, sorted %s', async (_, place) => {
    const many = Array.from({ length: 3400 }, (_, at) => row(`row-${String(at).padStart(4, '0')}`, 80 - at / 100))
    await hub.put(west(many))
    const page = await visits.visit(`${base}${place}`)
    await expect.poll(async () => (await names(page))[0], patient).toBe('row-0000')
    const box = page.locator('.table-scroll')
    const isShown = (name: string) => page.locator('tbody [data-row-link]', { hasText: name }).isVisible()
    const times: number[] = []
    /** Each look is one piece away from the one before, as pages are read on. */
    for (const at of [900, 1800, 1980, 2900, 1000, 3399]) {
      await expect
        .poll(async () => {
          await box.evaluate((element, to) => element.scrollTo(0, to), Math.max(0, at - 5) * 38)
          return isShown(`row-${String(at).padStart(4, '0')}`)
        }, patient)
        .toBe(true)
      await page.waitForTimeout(1000)
      // What is read now and then would come once in three seconds.
      for (const turn of ['a', 'b', 'c']) {
        const since = performance.now()
        const [gone] = many.splice(at, 1, row(`row-${String(at).padStart(4, '0')}${turn}`, 80 - at / 100))
        await hub.put(west([...many]))
        await page.locator('tbody [data-row-link]', { hasText: many[at]?.name ?? '' }).waitFor()
        times.push(performance.now() - since)
        await expect.poll(() => names(page), { timeout: 1000 }).not.toContain(gone?.name)
      }
    }
    console.log(`on screen after ${times.map(Math.round).join(', ')} ms`)
    expect(times.toSorted((one, other) => one - other)[14]).toBeLessThan(1000)
  })

  it.each([
    ['in their order', '/types/pvc?view=rows'],
    ['by what moves', path],
  ])(
    'are struck out at once where they are gone while the order is held, sorted %s, before they are read again',
    { tags: ['long'] },
    async (_, place) => {
      const many = Array.from({ length: 2400 }, (_, at) => row(`row-${String(at).padStart(4, '0')}`, 80 - at / 100))
      await hub.put(west(many))
      hub.gateway.only = /\/rows\/pvc(\?|$)/
      const page = await visits.visit(`${base}${place}`)
      await expect.poll(async () => (await names(page))[0], patient).toBe('row-0000')
      const box = page.locator('.table-scroll')
      const line = (name: string) => page.locator('tbody tr', { hasText: name })
      for (const at of [3, 1700]) {
        const name = `row-${String(at).padStart(4, '0')}`
        await expect
          .poll(async () => {
            await box.evaluate((element, to) => element.scrollTo(0, to), Math.max(0, at - 5) * 38)
            return line(name).isVisible()
          }, patient)
          .toBe(true)
        await page.waitForTimeout(1000)
        await line(`row-${String(at + 1).padStart(4, '0')}`).hover()
        hub.gateway.hold = true
        many.splice(
          many.findIndex((one) => one.name === name),
          1,
        )
        await hub.put(west([...many]))
        await expect.poll(() => line(name).getAttribute('class'), { ...patient, message: name }).toContain('gone')
        const looks = line(name)
          .locator('[data-row-link]')
          .evaluate((link) => link.ownerDocument.defaultView?.getComputedStyle(link).textDecorationLine)
        expect(await looks).toBe('line-through')
        // The order is given back, and nobody has read it again.
        await page.mouse.move(0, 0)
        await expect.poll(() => line(name).count(), patient).toBe(0)
        hub.gateway.hold = false
      }
    },
  )

  it('keep their place as they are now where they only moved while the order is held, and are struck out once they are gone', async () => {
    const rows = new Map(Array.from({ length: 2400 }, (_, at) => [`row-${String(at).padStart(4, '0')}`, 80 - at / 100]))
    const put = () => hub.put(west([...rows].map(([name, used]) => row(name, used))))
    await put()
    hub.gateway.only = /\/rows\/pvc(\?|$)/
    const page = await visits.visit(`${base}${path}`)
    await expect.poll(async () => (await names(page))[0], patient).toBe('row-0000')
    const box = page.locator('.table-scroll')
    const line = (name: string) => page.locator('tbody tr', { hasText: name })
    for (const [at, isBeyond] of [
      [3, true],
      // Loaded, and nobody has read yet where it is.
      [1700, false],
    ] as const) {
      const name = `row-${String(at).padStart(4, '0')}`
      const looks = async () => {
        const words = (await line(name).innerText()).split(/\s+/)
        const is = (await line(name).getAttribute('class')) ?? ''
        return [is.includes('gone'), is.includes('elsewhere'), words.find((word) => /^\d+$/.test(word))]
      }
      const comesToBe = (...now: readonly unknown[]) => expect.poll(looks, { ...patient, message: name }).toEqual(now)
      await expect
        .poll(async () => {
          await box.evaluate((element, to) => element.scrollTo(0, to), Math.max(0, at - 5) * 38)
          return line(name).isVisible()
        }, patient)
        .toBe(true)
      await page.waitForTimeout(1000)
      await line(`row-${String(at + 1).padStart(4, '0')}`).hover()
      hub.gateway.hold = true
      // The last of all.
      rows.set(name, 1)
      await put()
      await comesToBe(false, isBeyond, '1')
      rows.set(name, 2)
      await put()
      await comesToBe(false, isBeyond, '2')
      rows.delete(name)
      await put()
      await comesToBe(true, false, '2')
      rows.set(name, 3)
      await put()
      await comesToBe(false, isBeyond, '3')
      await page.mouse.move(0, 0)
      hub.gateway.hold = false
    }
  })

  it.each([
    ['the stream is cut', false],
    ['somebody scrolls', true],
  ])(
    'stay true in an order that is held when the stream is opened anew, as %s',
    { tags: ['long'] },
    async (_, isScrolled) => {
      const named = (at: number) => `row-${String(at).padStart(4, '0')}`
      const rows = new Map(Array.from({ length: 3400 }, (_, at) => [named(at), 80 - at / 100]))
      const put = () => hub.put(west([...rows].map(([name, used]) => row(name, used))))
      await put()
      hub.gateway.only = /\/rows\/pvc(\?|$)/
      const page = await visits.visit(`${base}${path}`)
      await expect.poll(async () => (await names(page))[0], patient).toBe(named(0))
      await live(page).waitFor()
      const line = (name: string) => page.locator('tbody tr', { hasText: name })
      const looks = async (at: number) => {
        const is = (await line(named(at)).getAttribute('class')) ?? ''
        const words = (await line(named(at)).innerText()).split(/\s+/)
        return [is.includes('gone'), is.includes('elsewhere'), words.find((word) => /^\d+$/.test(word))]
      }
      const all = () => Promise.all([3, 4, 5].map(looks))
      await line(named(8)).hover()
      rows.delete(named(3))
      rows.set(named(4), 1).set(named(5), 2)
      await put()
      await expect.poll(all, patient).toEqual([
        [true, false, '80'],
        [false, true, '1'],
        [false, true, '2'],
      ])
      const box = page.locator('.table-scroll')
      const streams = () => hub.gateway.requests.filter((one) => one.includes('rows=pvc')).length
      const before = streams()
      if (isScrolled) {
        // The pointer stays at the list.
        for (const [at, top] of [
          [1700, 1695 * 38],
          [8, 0],
        ] as const) {
          const since = streams()
          await expect
            .poll(async () => {
              await box.evaluate((element, to) => element.scrollTo(0, to), top)
              return line(named(at)).isVisible()
            }, patient)
            .toBe(true)
          await expect.poll(streams, patient).toBeGreaterThan(since)
        }
      } else hub.gateway.cut()
      await expect.poll(streams, patient).toBeGreaterThan(before)
      await live(page).waitFor()
      await page.waitForTimeout(1000)
      rows.set(named(3), 3).set(named(4), 4)
      rows.delete(named(5))
      await put()
      await expect.poll(all, patient).toEqual([
        [false, true, '3'],
        [false, true, '4'],
        [true, false, '2'],
      ])
      await page.mouse.move(0, 0)
      await expect.poll(() => names(page), patient).not.toContain(named(4))
    },
  )

  it('are what was read last where the stream does not get through', async () => {
    const page = await visits.visit(`${base}/types/pvc?view=rows`)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'orders', 'stock'])
    await live(page).waitFor()
    hub.gateway.streams = false
    hub.gateway.cut()
    await hub.put(west([row('carts', 20), row('new', 30), row('stock', 40)]))
    await lookAgain(page)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'new', 'stock'])
    await hub.put(west([row('carts', 20), row('stock', 40)]))
    await lookAgain(page)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'stock'])
    hub.gateway.streams = true
  })

  it('are called live no longer where the stream stalls with its connection open, and are what was read last', async () => {
    hub.gateway.only = /\/stream/
    const page = await visits.visit(`${base}/types/pvc?view=rows`)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'orders', 'stock'])
    await live(page).waitFor()
    hub.gateway.hold = true
    try {
      const linkSays = (word: string) =>
        page.getByRole('button', { name: new RegExp(`^Connection: ${word}`) }).waitFor()
      await linkSays('Reconnecting')
      await linkSays('Polling')
      await hub.put(west([row('carts', 20), row('new', 30), row('stock', 40)]))
      await lookAgain(page)
      await expect.poll(() => names(page), patient).toEqual(['carts', 'new', 'stock'])
    } finally {
      hub.gateway.hold = false
    }
    await live(page).waitFor()
    await hub.put(west([row('carts', 20), row('stock', 40)]))
    await expect.poll(() => names(page), patient).toEqual(['carts', 'stock'])
  })

  it.each([
    ['wide', { width: 1280, height: 800 }],
    ['narrow', { width: 360, height: 740 }],
  ])(
    'do not move under the pointer where the hub is not heard, says the page, and is again (%s)',
    async (_, viewport) => {
      const many = Array.from({ length: 60 }, (_, at) => row(`row-${String(at).padStart(2, '0')}`, at))
      await hub.put(west(many))
      const page = await visits.visit(`${base}/types/pvc?view=rows`, { viewport })
      await live(page).waitFor()
      await expect.poll(async () => (await names(page))[0], patient).toBe('row-00')
      await page.locator('tbody tr[data-index]').nth(2).hover()
      const last = page.locator('tbody tr[data-index]').last()
      const boxOf = async (where: Locator) => {
        const box = await where.boundingBox()
        if (!box) throw new Error('it is not shown')
        return { top: box.y, bottom: box.y + box.height }
      }
      const topOfThird = async () => (await boxOf(page.locator('tbody tr[data-index]').nth(2))).top
      const before = await topOfThird()
      const banner = (words: RegExp) => page.locator('.banner', { hasText: words })
      const port = Number(new URL(base).port)
      for (const [words, begin, end] of [
        [/The hub is not heard/, () => Object.assign(hub.gateway, { hold: true, only: /\/(stream|healthz)/ }), null],
        [/Offline/, () => hub.gateway.stop(), () => hub.gateway.start(port)],
      ] as const) {
        await begin()
        await banner(words).waitFor()
        expect(await topOfThird(), String(words)).toBe(before)
        if (!end) {
          expect((await boxOf(banner(words))).bottom).toBe(viewport.height)
          // Links in rows of two lines are closer together than axe wants, with or without a banner.
          const isOfBanner = (complaint: string) => viewport.width > 400 || !complaint.includes('target-size')
          expect((await complaintsOf(page)).filter(isOfBanner)).toEqual([])
          expect(await excessAt320(page)).toBeLessThanOrEqual(0)
          await expect.poll(topOfThird, patient).toBe(before)
          // By keys it comes after the bar at the top.
          await page.getByRole('button', { name: /^Connection:/ }).focus()
          const focused = () => page.evaluate<string>('document.activeElement.innerText')
          for (let press = 0; press < 12 && (await focused()) !== 'Retry now'; press++) await page.keyboard.press('Tab')
          expect(await focused()).toBe('Retry now')
          await page.evaluate('document.activeElement.blur()')
        }
        hub.gateway.hold = false
        await end?.()
        await live(page).waitFor()
        await banner(words).waitFor({ state: 'detached' })
        expect(await topOfThird(), `after ${words}`).toBe(before)
      }
      // Nothing is below it for good.
      await hub.gateway.stop()
      await banner(/Offline/).waitFor()
      await page.locator('.table-scroll').evaluate((element) => element.scrollTo(0, element.scrollHeight))
      await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)')
      await expect.poll(() => last.innerText(), patient).toContain('row-59')
      expect((await boxOf(last)).bottom).toBeLessThanOrEqual((await boxOf(banner(/Offline/))).top)
      await hub.gateway.start(port)
    },
  )

  it('reach every tab over one stream', async () => {
    const page = await visits.visit(`${base}/types/pvc?view=rows`)
    const other = await page.context().newPage()
    await other.goto(`${base}${path}`)
    const fleet = await page.context().newPage()
    await fleet.goto(base)
    for (const each of [page, other]) await expect.poll(() => names(each), patient).toHaveLength(3)
    await fleet.locator('tr[data-index]').first().waitFor()
    await expect.poll(() => hub.gateway.openStreams, patient).toBe(1)
    await hub.put(west([row('carts', 20), row('new', 99), row('orders', 30), row('stock', 40)]))
    await expect.poll(() => names(page), patient).toEqual(['carts', 'new', 'orders', 'stock'])
    await other.bringToFront()
    await expect.poll(() => names(other), patient).toEqual(['new', 'stock', 'orders', 'carts'])
    await fleet.close()
    await hub.put(west([row('carts', 20), row('orders', 98), row('stock', 40)]))
    await expect.poll(() => names(other), patient).toEqual(['orders', 'stock', 'carts'])
    expect(hub.gateway.openStreams).toBe(1)
  })

  it('are of the past while the network is away, and caught up with when it is back', async () => {
    const page = await visits.visit(`${base}/types/pvc?view=rows`)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'orders', 'stock'])
    const port = Number(new URL(base).port)
    await hub.gateway.stop()
    await page.locator('main.is-unheard').waitFor()
    // The banner says it, once.
    await page.getByRole('status').getByText('The hub cannot be reached.').waitFor()
    expect(await page.getByText('Not updated.').count()).toBe(0)
    await hub.put(west([row('carts', 20), row('new', 30), row('stock', 40)]))
    await hub.gateway.start(port)
    await expect.poll(() => names(page), patient).toEqual(['carts', 'new', 'stock'])
    await page.locator('main.is-unheard').waitFor({ state: 'detached' })
  })

  it.each([
    ['rows that the stream tells', '/types/pvc?view=rows', /\/rows\/pvc/, 'Live'],
    ['what has to be read', '/types', /\/types(\?|$)/, 'Catching up'],
  ])('never stand as of the past beside "Live" once the network is back: %s', async (_, place, read, until) => {
    const page = await visits.visit(`${base}${place}`)
    await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
    await page.locator('tbody [data-row-link]').first().waitFor()
    const port = Number(new URL(base).port)
    await hub.gateway.stop()
    await page.locator('main.is-unheard').waitFor()
    // A look in vain, as one that was under way.
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await page.waitForTimeout(3500)
    await page.evaluate(`(() => {
      window.saw = []
      new MutationObserver(() => {
        const isLive = document.querySelector('.link.is-live') !== null
        const isOld = document.body.innerText.includes('Not updated.')
        if (isLive && isOld) window.saw.push(document.querySelector('.link').innerText)
      }).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true })
    })()`)
    Object.assign(hub.gateway, { hold: true, only: read })
    await hub.gateway.start(port)
    const chip = (word: string) => page.getByRole('button', { name: new RegExp(`^Connection: ${word}`) })
    await chip(until).waitFor()
    await page.waitForTimeout(500)
    hub.gateway.hold = false
    await chip('Live').waitFor()
    await page.getByText('Not updated.').waitFor({ state: 'detached' })
    expect(await page.evaluate('window.saw')).toEqual([])
  })

  it.each([
    ['registries', '/registries', /\/registries(\?|$)/],
    ['kinds of rows', '/types', /\/types(\?|$)/],
  ])(
    'are read again by themselves while the stream is heard, and nothing is called live before: %s',
    async (_, place, read) => {
      const page = await visits.visit(`${base}${place}`)
      await live(page).waitFor()
      await page.locator('h1').first().waitFor()
      await page.locator('.skeleton').waitFor({ state: 'detached' })
      for (const code of ['store_unavailable', 'no_answer']) {
        Object.assign(hub.gateway, {
          refuse: { status: 503, code, error: 'not now', retryAfterSeconds: 5 },
          only: read,
        })
        await lookAgain(page)
        await page.getByText('Not updated.').waitFor()
        expect(await chip(page)).toBe('Catching up')
        hub.gateway.refuse = null
        const since = performance.now()
        await page.getByText('Not updated.').waitFor({ state: 'detached' })
        await live(page).waitFor()
        expect((performance.now() - since) / slowness).toBeLessThan(2000)
      }
    },
  )

  it('are called old beside a notice that they are', async () => {
    const page = await visits.visit(`${base}/types`)
    await live(page).waitFor()
    await page.locator('tbody [data-row-link]').first().waitFor()
    Object.assign(hub.gateway, { refuse: { status: 500, code: 'unexpected', error: 'no' }, only: /\/types(\?|$)/ })
    await lookAgain(page)
    await page.getByText('Not updated.').waitFor()
    expect(await chip(page)).toBe('Behind')
  })

  it('are read again at once when the browser says that there is a network, in all tabs and also where the stream stayed', async () => {
    const page = await visits.visit(`${base}/types`)
    const others = await Promise.all(
      ['/registries', '/clusters/west'].map(async (place) => {
        const other = await page.context().newPage()
        await other.goto(`${base}${place}`)
        return other
      }),
    )
    const pages = [page, ...others]
    for (const one of pages) {
      await live(one).waitFor()
      await one.locator('.skeleton').first().waitFor({ state: 'detached' })
    }
    await page.context().setOffline(true)
    try {
      for (const one of pages) {
        await one.bringToFront()
        await lookAgain(one)
      }
      await page.getByText('Not updated.').waitFor()
      // Long enough for the pauses between tries to be as long as they become.
      await page.waitForTimeout(8_000)
    } finally {
      await page.context().setOffline(false)
    }
    const since = performance.now()
    for (const one of pages) {
      await one.getByText('Not updated.').waitFor({ state: 'detached' })
      await live(one).waitFor()
    }
    expect((performance.now() - since) / slowness).toBeLessThan(2000)
  })

  const live = (page: Page) => page.getByRole('button', { name: /^Connection: Live/ })
  const chip = (page: Page) => page.locator('.link-word').innerText()
  /** As a page that is shown again. */
  const lookAgain = (page: Page) => page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
})
