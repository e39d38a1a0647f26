import type { PlanGang } from "../plan-gang.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { FitClass } from "./fit-classes.ts";
import type { Lane } from "./gang-lines.ts";
import { liftedKey } from "./kept-room.ts";
import { placeAll } from "./place-all.ts";
import { type ClusterBlock, type ClusterBlocks, clusterBlocks } from "./refused.ts";
import { fitsEmpty, type Request, type RoomTry, shortOf, tryIn, tryRoom } from "./requests.ts";
import type { Parts } from "./state-parts.ts";

/** A request that was placed, and the point to which its cluster goes back if it is not admitted. */
export type Placed = { readonly room: RoomTry; readonly mark: number };

/** Finds room for requests during one round. It remembers refusals: room only shrinks during a round. */
export class FindRoom {
  readonly #parts: Parts;
  readonly #round: number;
  /** How many placements clusters had when the hopeful requests were looked at last, at first when it was made. */
  readonly #lookedAt = new Map<ClusterState, number>();

  /** Expects the rooms as they were brought up to date for the round. */
  constructor(parts: Parts, round: number) {
    this.#parts = parts;
    this.#round = round;
    for (const cluster of parts.clusters.values()) this.#lookedAt.set(cluster, cluster.room.mark);
  }

  /** Places a request in the fullest cluster that takes it, or only in one. Null: none takes it. */
  place(lane: Lane, gang: PlanGang, request: Request, only?: ClusterState): Placed | null {
    if (this.isClosed(request)) return null;
    const rooms: RoomTry[] = [];
    for (const room of this.#roomsLeft(request)) {
      if ((only === undefined || room.cluster === only) && mayTake(lane, room) && this.#isOpen(room)) rooms.push(room);
    }
    for (const room of rooms.length < 2 ? rooms : ranked(rooms, gang, request)) {
      const { mark } = room.cluster.room;
      if (placeAll(room.cluster.room, room.groups).all) return { room, mark };
      this.#note(room, null);
    }
    return null;
  }

  /** True if some cluster takes a request now. Places nothing. */
  hasRoom(lane: Lane, request: Request): boolean {
    if (this.isClosed(request)) return false;
    const { lastRoom } = request;
    if (lastRoom !== null && this.#takes(lane, lastRoom)) return true;
    for (const room of request.reopened ?? this.#allRooms(request)) if (this.#takes(lane, room)) return true;
    return false;
  }

  #takes(lane: Lane, room: RoomTry): boolean {
    if (!mayTake(lane, room) || this.#isRefused(room)) return false;
    const { fits, short } = tryRoom(room);
    if (fits) room.request.lastRoom = room;
    else this.#note(room, short);
    return fits;
  }

  /** True if no cluster has room for a request, whatever other pods of its gang take. */
  isClosed({ closedFor }: Request): boolean {
    return closedFor === this.#parts.clustersVersion;
  }

  /** Looks whether a request is closed, and closes it then. */
  closes(request: Request): boolean {
    if (this.isClosed(request)) return true;
    // Without the reservations that are charged now, there may be room for it.
    return request.lifted === liftedKey(this.#parts.kept) && this.#closesNow(request);
  }

  #closesNow(request: Request): boolean {
    const { lastRoom } = request;
    if (lastRoom !== null && this.#isOpen(lastRoom)) return false;
    let isExact = true;
    for (const room of request.reopened ?? this.#allRooms(request)) {
      if (room.lacks !== null) continue;
      if (this.#isOpen(room)) {
        request.lastRoom = room;
        return false;
      }
      isExact &&= room.short !== null;
    }
    request.lastRoom = null;
    if (isExact) this.#close(request);
    return isExact;
  }

  /** True if enough pods of each class of a request fit, whatever the others take. Notes of which too few do. */
  #isOpen(room: RoomTry): boolean {
    if (this.#isRefused(room)) return false;
    const short = shortOf(room);
    if (short !== null) this.#note(room, short);
    return short === null;
  }

  /**
   * Lets a lane wait for room for a request that was refused. False if its refusal holds for this very room only: every
   * class of the request alone would fit.
   */
  wait(lane: Lane, request: Request): boolean {
    let isExact = true;
    if (!this.isClosed(request)) {
      const rooms = this.#roomsOf(lane, request);
      for (const room of rooms) room.cluster.watch.add(room);
      isExact = rooms.every(({ lacks, short }) => lacks !== null || short !== null);
      if (lane.barred.length === 0 && isExact) this.#close(request);
    }
    if (!request.waiting.has(lane)) {
      request.waiting.add(lane);
      lane.requests.push(request);
    }
    return isExact;
  }

  /** Closes the hopeful requests for which a round has left no room. */
  closeHopeful(): void {
    const moved = new Set<ClusterState>();
    for (const [cluster, mark] of this.#lookedAt) {
      const { room } = cluster;
      if (room.mark === mark) continue;
      moved.add(cluster);
      this.#lookedAt.set(cluster, room.mark);
      room.dropUntouched();
    }
    for (const request of this.#parts.hopeful) {
      const { lastRoom } = request;
      // Where nothing was placed since, it is as open as it was.
      if (lastRoom !== null && !moved.has(lastRoom.cluster)) continue;
      this.closes(request);
    }
  }

  /** Why each cluster refuses a lane: some whatever the flavors, the others for each choice of them. */
  blocks(lane: Lane, requests: readonly Request[]): ClusterBlocks {
    return lane.barred.length === 0
      ? this.#parts.shared(lane.shape, requests, () => this.#newBlocks(lane, requests))
      : this.#newBlocks(lane, requests);
  }

  #newBlocks(lane: Lane, requests: readonly Request[]): ClusterBlocks {
    const blocks: ClusterBlock[] = [];
    for (const { cluster, block } of this.#parts.clustersFor(lane.shape.ask)) {
      const barred = lane.barred.includes(cluster.name) ? "Draining" : null;
      const reason = block ?? barred;
      if (reason !== null) blocks.push({ cluster: cluster.name, reason, choice: {} });
    }
    for (const request of requests) {
      for (const room of this.#roomsOf(lane, request)) blocks.push(blockOf(room));
    }
    return clusterBlocks(blocks);
  }

  /** The clusters that could take a gang of a lane, by name. */
  #roomsOf({ barred }: Lane, request: Request): readonly RoomTry[] {
    const rooms = this.#allRooms(request);
    return barred.length === 0 ? rooms : rooms.filter(({ cluster }) => !barred.includes(cluster.name));
  }

  /** Those that may have room for a request, by name. */
  #roomsLeft(request: Request): readonly RoomTry[] {
    const { reopened } = request;
    if (reopened === null) return this.#allRooms(request);
    return reopened.length < 2 ? reopened : this.#allRooms(request).filter((room) => reopened.includes(room));
  }

  #allRooms(request: Request): readonly RoomTry[] {
    const { clustersVersion: version } = this.#parts;
    if (request.all.version !== version) {
      const open = this.#parts.clustersFor(request.sized.ask).filter(({ block }) => block === null);
      request.all = { version, rooms: open.map(({ cluster, facts }) => tryIn(request, cluster, facts)) };
    }
    return request.all.rooms;
  }

  /** True if the round has refused it already, and the room has not changed in a way that could matter. */
  #isRefused(room: RoomTry): boolean {
    if (room.watched) return true;
    if (room.refusedIn !== this.#round) return false;
    return room.short !== null || room.refusedAfter === room.cluster.planned;
  }

  #note(room: RoomTry, short: FitClass | null): void {
    room.refusedIn = this.#round;
    room.refusedAfter = room.cluster.planned;
    room.short = short;
  }

  #close(request: Request): void {
    for (const room of request.reopened ?? request.tries.values()) room.cluster.watch.add(room);
    request.reopened = [];
    request.closedFor = this.#parts.clustersVersion;
    if (request.hopeful) this.#parts.hopeful.drop(request);
    const { hopeful } = this.#parts.waits;
    if (hopeful.size > 0) for (const list of request.lists) if (list.hopeful) hopeful.drop(list);
  }
}

/** False: a cluster takes no gang of a lane, whatever its room. */
function mayTake({ barred }: Pick<Lane, "barred">, { cluster, lacks }: RoomTry): boolean {
  return lacks === null && !barred.includes(cluster.name);
}

/** The clusters of a request, the fullest first; last comes the one where the gang was undone last. */
function ranked(rooms: readonly RoomTry[], gang: PlanGang, request: Request): readonly RoomTry[] {
  const { resource, demand } = request;
  const all = rooms.map((room) => {
    const { labels, labelsKey, cluster } = room;
    const late = gang.backoff?.lastCluster === cluster.name ? 1 : 0;
    const full = cluster.room.fullness({ resource, labels, labelsKey }, demand);
    return { room, late, full };
  });
  return all.sort((a, b) => a.late - b.late || b.full - a.full).map(({ room }) => room);
}

function blockOf(room: RoomTry): ClusterBlock {
  const { cluster, request, lacks } = room;
  const reason = lacks !== null ? "NoSuchFlavor" : fitsEmpty(room) ? "NoCapacity" : "TooLarge";
  if (room.block?.reason !== reason) room.block = { cluster: cluster.name, reason, choice: request.choice };
  return room.block;
}
