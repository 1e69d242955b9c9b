import { minutes, seconds } from '#model'

/* Times and bounds of streams. */

/** Between two looks at all streams. */
export const tickMs = 500
/** A heartbeat each second: a page that hears nothing for longer asks whether the hub is still there. */
export const heartbeatMs = seconds(1)
/** It goes to a part of the streams at a time: what moves meanwhile does not wait until thousands were written to. */
export const heartbeatTurns = 5
/** One heartbeat in so many has an id, whether or not anything moved: by its coming it tells nothing. */
export const heartbeatsPerId = 10
/** Between two looks of a stream at what it shows: less than a look holds. */
export const ticksPerLook = 10
/** Between two questions whether anybody is there. */
export const ticksPerPing = 60
/** A stream ends after this, and whoever reads it comes again. */
export const maxLifeMs = minutes(60)
/** The same for people known by a proxy's headers: only a new request shows whether they are still signed in there, in which groups. */
export const maxProxiedMs = minutes(5)
/** So long may an administrator look through another's eyes. */
export const maxBorrowedMs = minutes(15)
/** How long a client that was told to begin again may take to read it. */
export const farewellMs = seconds(5)
/** The same where the stream ends because it must. */
export const shortFarewellMs = seconds(1)
/** Without policies to go by nothing is sent; after this the stream ends. */
export const maxBlindMs = seconds(10)
/** Snapshots are made for this long at a time, then others have their turn. */
export const snapshotTurnMs = 25
/** A client of rows that has not taken more than this is told no more. */
export const fewBytes = 64 * 1024
/** A client that takes nothing of what waits for it for so long is gone. */
export const maxStallMs = seconds(30)
/** How often one caller may open streams. */
export const defaultOpens = { perSecond: 10, burst: 100 }
