/* serializability.pml - validated reads: strict serializability, checked on the graph of all commands that took effect.
 *
 * An item is the head of a stream (or a row): the version last put in place (ver: command+1, 0 = initial), whose pending
 * lies on it (by: command+1), and the epoch of the head slot. A commit of the primary puts its version in place at once,
 * finalising does it on the others; a stream's committed slots stay readable for ever, so "the primary slot holds
 * committed(a)" is simply gC. `world`: network and bystanders, as in atomicity.pml. One attempt per command.
 *
 * A command that validates something prepares its primary as well (HOLD); the mutation -DUNPREPARED does not.
 *
 * The mutation -DPARTS: what one atomic request writes need not show at once. An item that is late shows to reads as it was
 * before; writes and their conditions meet it as it is.
 */
#define B(a) (1<<(a))
#define TX 0
#define PLAIN 1        /* one append, nothing validated */
#define NATIVE 2       /* all conditions, also those of the reads, and all writes in one atomic request */
#define NO 3
#if SCEN==1            /* write skew, and a reader of both */
#define NI 2
hidden byte ws[6] = {1,9, 0,9, 9,9}; hidden byte nw[3] = {1,1,0}; hidden byte rs[3] = {3,3,3}; hidden byte kind[3] = {TX,TX,TX};
#elif SCEN==2          /* reads A writes B; a plain append to A; a reader of both */
#define NI 2
hidden byte ws[6] = {1,9, 0,9, 9,9}; hidden byte nw[3] = {1,1,0}; hidden byte rs[3] = {3,1,3}; hidden byte kind[3] = {TX,PLAIN,TX};
#elif SCEN==3          /* skew in a ring of three */
#define NI 3
hidden byte ws[6] = {1,9, 2,9, 0,9}; hidden byte nw[3] = {1,1,1}; hidden byte rs[3] = {3,6,5}; hidden byte kind[3] = {TX,TX,TX};
#elif SCEN==4          /* skew between a command with two writes and a native one; a plain append */
#define NI 3
hidden byte ws[6] = {1,2, 0,9, 2,9}; hidden byte nw[3] = {2,1,1}; hidden byte rs[3] = {7,3,4}; hidden byte kind[3] = {TX,NATIVE,PLAIN};
#elif SCEN==5          /* two with two writes each in opposite order, and a reader */
#define NI 2
hidden byte ws[6] = {0,1, 1,0, 9,9}; hidden byte nw[3] = {2,2,0}; hidden byte rs[3] = {3,3,3}; hidden byte kind[3] = {TX,TX,TX};
#elif SCEN==6          /* a native one of two writes, skew against it, and a reader */
#define NI 3
hidden byte ws[6] = {0,1, 2,9, 9,9}; hidden byte nw[3] = {2,1,0}; hidden byte rs[3] = {7,7,7}; hidden byte kind[3] = {NATIVE,TX,TX};
#elif SCEN==7          /* with and without HOLD together, and a third in the ring */
#define NI 3
hidden byte ws[6] = {1,9, 0,1, 2,0}; hidden byte nw[3] = {1,2,2}; hidden byte rs[3] = {7,3,7}; hidden byte kind[3] = {TX,TX,TX};
#endif
#define W(a,i) ws[(a)*2+(i)]
#define WRITES(a,k) ((nw[a]>0 && W(a,0)==(k)) || (nw[a]>1 && W(a,1)==(k)))
#define READS(a,k) (rs[a] & B(k))
#define ONLYREADS(a,k) (READS(a,k) && !WRITES(a,k))
#define VALIDATES(a) (ONLYREADS(a,0) || ONLYREADS(a,1) || (NI>2 && ONLYREADS(a,2)))
#ifdef UNPREPARED
#define HOLDS(a) 0
#else
#define HOLDS(a) VALIDATES(a)
#endif
#define FIRST(a) (HOLDS(a) -> 0 : 1)

typedef Item { byte ver; byte by; byte ep };
Item it[NI];
byte rv[NO*NI], re[NO*NI];                        /* version and epoch that command a has read */
byte sent, com, sawC, sawA;
byte gC, gAck, gTold;                             /* ghosts */
byte before[NO];                                  /* ghost: acknowledged before a began (real time) */
byte next[NI*(NO+1)];                             /* ghost: who overwrote version v of item k */
hidden byte x, y, z, e[NO];
#ifdef PARTS
byte late, lver[NI], lep[NI];                     /* items that show as they were, and how */
#define LATE(k) (late & B(k))
#else
#define LATE(k) 0
#endif

#define SAME(a,k) (it[k].ver==rv[(a)*NI+(k)])
#define FREEAT(a,k) (SAME(a,k) && it[k].by==0 && it[k].ep==re[(a)*NI+(k)])
#ifdef NOPENDCHECK     /* mutation: validation looks at versions only */
#define VALID(a,k) SAME(a,k)
#else
#define VALID(a,k) (SAME(a,k) && it[k].by==0)
#endif
#define READY(a) ((HOLDS(a) && it[W(a,0)].by==(a)+1) || (!HOLDS(a) && FREEAT(a,W(a,0))))
#define COMMITTED(a) (gC & B(a))
#define UNDECIDED(a) (!COMMITTED(a) && (FREEAT(a,W(a,0)) || (HOLDS(a) && it[W(a,0)].by==(a)+1)))

/* GRAPH: version read -> reader -> who overwrote it; acknowledged before -> began after. No cycle. */
inline check() { d_step {
  assert((gAck & gC)==gAck); assert((gTold & gC)==0);
  x=0;
  do
  :: x<NO -> e[x]=0; x++
  :: else -> break
  od; x=0;
  do
  :: x<NO ->
     if
     :: gC & B(x) ->
        y=0;
        do
        :: y<NI ->
           if
           :: READS(x,y) ->
              z=rv[x*NI+y];
              if :: z -> e[z-1]=e[z-1]|B(x) :: else fi;
              z=next[y*(NO+1)+z];
              if :: z && z!=x+1 -> e[x]=e[x]|B(z-1) :: else fi
           :: else
           fi; y++
        :: else -> break
        od;
        y=0;
        do
        :: y<NO -> if :: before[x] & B(y) -> e[y]=e[y]|B(x) :: else fi; y++
        :: else -> break
        od
     :: else
     fi; x++
  :: else -> break
  od; x=0;
  do
  :: x<NO ->
     y=0;
     do
     :: y<NO -> if :: e[y] & B(x) -> e[y]=e[y]|e[x] :: else fi; y++
     :: else -> break
     od; x++
  :: else -> break
  od; x=0;
  do
  :: x<NO -> assert(!(e[x] & B(x))); x++
  :: else -> break
  od; x=0; y=0; z=0 } }

#define OVERWRITE(a,k) next[(k)*(NO+1)+rv[(a)*NI+(k)]]=a+1
#ifdef PARTS
#define SHOW(k) late=late&(255-B(k));                            /* nobody writes upon what is late without its showing */
#else
#define SHOW(k)
#endif
inline put(a,k) { SHOW(k) it[k].ver=a+1; it[k].by=0; it[k].ep=0 }
#ifdef PARTS
inline put_beside(a,k) {                                         /* by an atomic request */
  put(a,k);
  if :: lver[k]=rv[a*NI+k]; lep[k]=re[a*NI+k]; late=late|B(k) :: skip fi }
#define VALIDATED(a,k) (LATE(k) -> lver[k]==rv[(a)*NI+(k)] : VALID(a,k))
#else
inline put_beside(a,k) { put(a,k) }
#define VALIDATED(a,k) VALID(a,k)
#endif
inline do_commit(a) {                                            /* HELD: prepared on the committed base */
  assert(SAME(a,W(a,0)));
  if :: nw[a]>1 -> assert(it[W(a,1)].by==a+1 && SAME(a,W(a,1))); OVERWRITE(a,W(a,1)) :: else fi;
  OVERWRITE(a,W(a,0)); put(a,W(a,0)); gC=gC|B(a); check() }
#define NATIVE_OK(a) ((!READS(a,0) || (WRITES(a,0) -> FREEAT(a,0) : VALID(a,0))) && (!READS(a,1) || (WRITES(a,1) -> FREEAT(a,1) : VALID(a,1))) \
  && (NI<3 || !READS(a,NI-1) || (WRITES(a,NI-1) -> FREEAT(a,NI-1) : VALID(a,NI-1))))
#define WRITES_OK(a) (FREEAT(a,W(a,0)) && (nw[a]<2 || FREEAT(a,W(a,1))))
inline do_native(a) {
  OVERWRITE(a,W(a,0)); put_beside(a,W(a,0));
  if :: nw[a]>1 -> OVERWRITE(a,W(a,1)); put_beside(a,W(a,1)) :: else fi;
  gC=gC|B(a); check() }
inline validate(a) {
#ifndef NOVAL          /* mutation: no validation at all */
  i=0;
  do
  :: atomic { i<NI && ONLYREADS(a,i) -> if :: VALIDATED(a,i) -> i++ :: else -> i=0; goto aborted fi }
  :: atomic { i<NI && !ONLYREADS(a,i) -> i++ }
  :: atomic { i>=NI -> i=0; break }
  od
#else
  skip
#endif
}

proctype owner(byte a) {
  byte i; bit ok;
  before[a]=gAck;
  do                                                             /* 1. read, each item at its own moment */
  :: atomic { i<NI && READS(a,i) && !(it[i].by && COMMITTED(it[i].by-1)) ->     /* (wait for an unfinalised commit) */
#ifdef PARTS
       if
       :: LATE(i) -> rv[a*NI+i]=lver[i]; re[a*NI+i]=lep[i]
       :: else -> rv[a*NI+i]=it[i].ver; re[a*NI+i]=it[i].ep
       fi; i++ }
#else
       rv[a*NI+i]=it[i].ver; re[a*NI+i]=it[i].ep; i++ }
#endif
  :: atomic { i<NI && !READS(a,i) -> i++ }
  :: atomic { i>=NI -> i=0; break }
  od;
  if
  :: kind[a]==NATIVE ->
#ifdef SPLIT           /* mutation: the reads are checked before the atomic write, not in it (SQL: read committed) */
     validate(a);
     if :: atomic { WRITES_OK(a) -> do_native(a); ok=1 } :: ok=0 fi
#else
     com=com|B(a);
     if :: atomic { NATIVE_OK(a) -> do_native(a); ok=1 } :: ok=0 fi
#endif
  :: kind[a]!=NATIVE && nw[a]==0 -> validate(a); atomic { gC=gC|B(a); gAck=gAck|B(a); check(); goto stop }      /* a read */
  :: kind[a]!=NATIVE && nw[a]>0 ->
#ifdef EARLY           /* mutation: validation before the prepares */
     validate(a);
#endif
     sent=sent|B(a); i=FIRST(a);
     do                                                          /* 2. prepare */
     :: atomic { i<nw[a] ->
          if
          :: FREEAT(a,W(a,i)) -> SHOW(W(a,i)) it[W(a,i)].by=a+1
          :: it[W(a,i)].by==a+1 -> skip
#ifdef IMPLICIT
          :: COMMITTED(a) && it[W(a,i)].by!=a+1 -> skip
#endif
          :: else -> i=0; goto aborted
          fi; i++ }
     :: atomic { i>=nw[a] -> i=0; break }
     od;
#ifndef EARLY
     validate(a);                                                /* 3. */
#endif
     com=com|B(a);                                               /* 4. */
     if :: atomic { READY(a) -> do_commit(a); ok=1 } :: ok=0 fi
  fi;
  if :: ok -> atomic { gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop } :: else fi;
  atomic {                                                       /* refused, or the answer got lost: fence, read */
    if
    :: COMMITTED(a) -> gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop
    :: UNDECIDED(a) -> SHOW(W(a,0)) it[W(a,0)].by=0; it[W(a,0)].ep++
    :: else
    fi };
aborted:
  atomic { if :: nw[a]>0 -> gTold=gTold|B(a); sawA=sawA|B(a); check() :: else fi };
stop: skip
}

#define CAN(c,what) :: atomic { (c) -> what }
#define PER(a,i) \
  CAN((sent&B(a)) && i>=FIRST(a) && i<nw[a] && FREEAT(a,W(a,i)), SHOW(W(a,i)) it[W(a,i)].by=a+1) \
  CAN((sawC&B(a)) && i<nw[a] && it[W(a,i)].by==a+1, put(a,W(a,i))) \
  CAN((sawA&B(a)) && i<nw[a] && it[W(a,i)].by==a+1, it[W(a,i)].by=0; it[W(a,i)].ep++)
#ifdef IMPLICIT          /* mutation: whoever finds everything prepared may call it committed */
#define ANYBODY(a) CAN((sent&B(a)) && nw[a]>0 && READY(a) && (nw[a]<2 || it[W(a,1)].by==a+1), do_commit(a))
#else
#define ANYBODY(a)
#endif
#define ALL(a) PER(a,0) PER(a,1) ANYBODY(a) \
  CAN((com&B(a)) && kind[a]!=NATIVE && READY(a), do_commit(a)) \
  CAN((com&B(a)) && kind[a]==NATIVE && NATIVE_OK(a), do_native(a)) \
  CAN((sent&B(a)) && UNDECIDED(a), SHOW(W(a,0)) it[W(a,0)].by=0; it[W(a,0)].ep++) \
  CAN((sent&B(a)) && COMMITTED(a) && !(sawC&B(a)), sawC=sawC|B(a)) \
  CAN((sent&B(a)) && !COMMITTED(a) && !UNDECIDED(a) && !(sawA&B(a)), sawA=sawA|B(a))
proctype world() {
end:
  do
  ALL(0)
  ALL(1)
  ALL(2)
#ifdef PARTS
  CAN(LATE(0), SHOW(0))
  CAN(LATE(1), SHOW(1))
#if NI>2
  CAN(LATE(2), SHOW(2))
#endif
#endif
  od
}
init { atomic { run owner(0); run owner(1); run owner(2); run world() } }
#ifdef REACH
active proctype reach() { assert(!(REACH)) }
#endif
