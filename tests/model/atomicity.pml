/* atomicity.pml - event slots as transaction records: atomicity, read committed, streams, plain and native writers.
 *
 * A slot is FREE (epoch 0: absent, epoch e: void(e)), PENDing or COMMitted. Every write is one atomic conditional step.
 * Nobody ever waits for a lease: a bystander may fence, finalise or undo at any moment (any misjudgement, any number of
 * bystanders, any delay), an owner may stop at any step (it just never runs again), and every request that was ever sent
 * may be delivered at any later time, any number of times. So there is no process per bystander: `world` holds all
 * requests that anybody may have sent. A bystander's request is justified by what somebody once read: `saw...`.
 *
 * -DSCEN=n picks who meets whom; -DHOLD prepares the primary too (needed as soon as reads are validated, see serializability.pml);
 * -DADOPT: an owner that finds a secondary void at another epoch goes on there: the stream has not moved, its decision stands.
 * It may have been its own pending that was undone, so now an undo of the one epoch and a pending at the other may meet.
 * When an attempt waits, lets go or fences is left open here; whether everybody gets on is for waiting.pml.
 * Mutations break ONE rule each; run expects the checker to find the damage.
 */
#define FREE 0
#define PEND 1
#define COMM 2
#define B(a) (1<<(a))

/* commands: their aggregates (primary first; 9: none), number of participants, esc: its own $tx slot is the primary (a
 * participant more), nat: one atomic request. np 1 = a plain append. */
#if SCEN==1            /* cross: A,B against B,A */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 1,0,9};   hidden byte np[3] = {2,2,0};  hidden byte esc[3] = {0,0,0}; hidden byte nat[3] = {0,0,0};
#elif SCEN==2          /* same primary, and a plain append to the other aggregate */
#define NO 3
#define NAGG 2
hidden byte ag[9] = {0,1,9, 0,1,9, 1,9,9}; hidden byte np[3] = {2,2,1}; hidden byte esc[3] = {0,0,0}; hidden byte nat[3] = {0,0,0};
#elif SCEN==3          /* three participants against two, in the opposite order */
#define NO 2
#define NAGG 3
hidden byte ag[6] = {0,1,2, 2,1,9};   hidden byte np[3] = {3,2,0};  hidden byte esc[3] = {0,0,0}; hidden byte nat[3] = {0,0,0};
#elif SCEN==4          /* escalated ($tx primary) against an ordinary one, and a plain append */
#define NO 3
#define NAGG 2
hidden byte ag[9] = {0,1,9, 1,0,9, 0,9,9}; hidden byte np[3] = {3,2,1}; hidden byte esc[3] = {1,0,0}; hidden byte nat[3] = {0,0,0};
#elif SCEN==5          /* escalated against escalated */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 0,1,9};   hidden byte np[3] = {3,3,0};  hidden byte esc[3] = {1,1,0}; hidden byte nat[3] = {0,0,0};
#elif SCEN==6          /* a native write of both slots against a protocol transaction and a plain append */
#define NO 3
#define NAGG 2
hidden byte ag[9] = {0,1,9, 1,0,9, 1,9,9}; hidden byte np[3] = {2,2,1}; hidden byte esc[3] = {0,0,0}; hidden byte nat[3] = {0,1,0};
#elif SCEN==7          /* a transaction, and a plain append to its secondary */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 1,9,9};   hidden byte np[3] = {2,1,0};  hidden byte esc[3] = {0,0,0}; hidden byte nat[3] = {0,0,0};
#endif
#ifndef TRIES
#define TRIES 1        /* attempts per command; each is a transaction of its own */
#endif
#ifndef POS
#define POS 1          /* versions per stream */
#endif
#ifndef NEV            /* events per command */
#define NEV {1,1,1}
#endif
hidden byte nev[3] = NEV;
#define NT (NO*TRIES)  /* attempt a belongs to command a%NO */
#define NS (NAGG*POS+NT)
#define NP(a) np[(a)%NO]
#ifdef SAMEID          /* mutation: a retry keeps the transaction id of the attempt before */
#define ID(a) ((a)%NO)
#else
#define ID(a) (a)
#endif

typedef Slot { byte st; byte ep; byte by };   /* pending: ep is the slot's OWN epoch below the pending */
Slot s[NS];
byte key[NT*3], epo[NT*3];                    /* what the requests of attempt a carry for participant i (0 = primary) */
#define K(a,i) key[(a)*3+(i)]
#define E(a,i) epo[(a)*3+(i)]
byte sent, com;                               /* attempts whose prepares / whose commit have been sent */
byte sawC, sawA;                              /* attempts somebody found committed / aborted: their finalise / undo may land */
byte gC, gAck, gTold;                         /* ghosts: committed, acknowledged, owner was told "aborted" */
hidden byte x, y, z;

/* the conditions of the writes */
#ifdef ANYVOID         /* mutation: "not committed, not pending" instead of "exactly the epoch I read" */
#define FREEAT(k,e) (s[k].st==FREE)
#else
#define FREEAT(k,e) (s[k].st==FREE && s[k].ep==(e))
#endif
#define OURS(k,a,state) (s[k].st==state && ID(s[k].by)==ID(a))
#ifdef UNDO_ANY        /* mutation: undo does not check whose pending it is */
#define UNDOABLE(k,a) (s[k].st==PEND)
#else
#define UNDOABLE(k,a) OURS(k,a,PEND)
#endif
/* the table of `resolve` (HOLD: the primary is prepared too, so "pending by that tx" is undecided as well) */
#define COMMITTED(a) OURS(K(a,0),a,COMM)
#ifdef HOLD
#define FIRST 0
#define READY(a) ((NP(a)>1 && OURS(K(a,0),a,PEND)) || (NP(a)==1 && FREEAT(K(a,0),E(a,0))))
#ifdef OLDTABLE        /* mutation: "anything else" in the table includes the transaction's own pending primary */
#define UNDECIDED(a) FREEAT(K(a,0),E(a,0))
#else
#define UNDECIDED(a) (FREEAT(K(a,0),E(a,0)) || OURS(K(a,0),a,PEND))
#endif
#else
#define FIRST 1
#define READY(a) FREEAT(K(a,0),E(a,0))
#define UNDECIDED(a) FREEAT(K(a,0),E(a,0))
#endif
/* what a reader who follows everything must find in slot k: attempt + 1, or 0 */
#define LOGICAL(k) ((s[k].st!=FREE && (gC & B(s[k].by))) -> s[k].by+1 : 0)

inline check() { d_step {
  x=0;
  do
  :: x<NT ->
     y=0;
     do
     :: y<NP(x) && ((sent|com) & B(x)) ->
        assert(!(gC & B(x)) || (s[K(x,y)].st!=FREE && s[K(x,y)].by==x));     /* ATOMIC: all of a committed one is there */
        assert((gC & B(x)) || s[K(x,y)].st!=COMM || s[K(x,y)].by!=x);        /* ATOMIC: nothing of another ever shows */
        y++
     :: else -> break
     od; x++
  :: else -> break
  od;
  assert((gAck & gC)==gAck);                                                 /* ACKED is for ever */
  assert((gTold & gC)==0);                                                   /* TOLD aborted never commits */
#if POS>1
  x=0;
  do
  :: x<NAGG ->
     y=0; z=0;                        /* y: where the logical stream ends; z: a slot before it is not yet in place */
     do
     :: y<POS && LOGICAL(x*POS+y) ->
#ifndef NOFEED
        assert(s[x*POS+y].st!=COMM || !z);                                   /* FEED shows each stream in order */
#endif
        if :: s[x*POS+y].st==PEND -> z=1 :: else fi;
        y = y + nev[s[x*POS+y].by%NO]
     :: else -> break
     od;
     z = 0;                           /* STREAM: no committed slot off the chain v, v+n, ... */
     do
     :: z<POS ->
        if :: LOGICAL(x*POS+z) -> assert(z<y);
              if :: z+1<POS && nev[s[x*POS+z].by%NO]==2 -> assert(!LOGICAL(x*POS+z+1)) :: else fi
           :: else fi; z++
     :: else -> break
     od; x++
  :: else -> break
  od;
#endif
  x=0; y=0; z=0 } }

#ifdef ADOPT           /* an undo carries the epoch at which somebody has seen the pending: its own slot's */
#define EPOCHS 3       /* epochs up to here are adopted */
byte pended[NT*3], adopted;
#define PENDED(a,i) pended[(a)*3+(i)]
#ifdef UNDO_ANY_EPOCH  /* mutation: undo checks the transaction only */
#define AT(k,e) 1
#else
#define AT(k,e) (s[k].ep==(e))
#endif
#define CAN_UNDO(a,i,e) CAN((sawA&B(a)) && i<NP(a) && (PENDED(a,i)&B(e)) && OURS(K(a,i),a,PEND) && AT(K(a,i),e), do_undo_at(K(a,i),e))
#define UNDO(a,i) CAN_UNDO(a,i,0) CAN_UNDO(a,i,1) CAN_UNDO(a,i,2) CAN_UNDO(a,i,3)
inline do_undo_at(k,e) { s[k].ep=(e)+1; s[k].st=FREE; s[k].by=0; check() }
inline do_prepare(a,i) { s[K(a,i)].st=PEND; s[K(a,i)].by=a; PENDED(a,i)=PENDED(a,i)|B(s[K(a,i)].ep); check() }
#else
#define UNDO(a,i) CAN((sawA&B(a)) && i<NP(a) && UNDOABLE(K(a,i),a), do_undo(K(a,i)))
inline do_prepare(a,i) { s[K(a,i)].st=PEND; s[K(a,i)].by=a; check() }
#endif
inline do_commit(a) {                                  /* HELD: at the commit every participant is prepared by this attempt */
  assert(NP(a)<2 || (s[K(a,1)].st==PEND && s[K(a,1)].by==a));
  assert(NP(a)<3 || (s[K(a,2)].st==PEND && s[K(a,2)].by==a));
  s[K(a,0)].st=COMM; s[K(a,0)].by=a; gC = gC|B(a); check() }
/* native: the same conditions, one atomic request */
#define NATIVE_OK(a) (FREEAT(K(a,0),E(a,0)) && FREEAT(K(a,1),E(a,1)))
inline do_native(a) {
  s[K(a,0)].st=COMM; s[K(a,0)].by=a; s[K(a,1)].st=COMM; s[K(a,1)].by=a; gC = gC|B(a); check() }
inline do_undo(k) {
#ifdef DELVOID         /* mutation: abort deletes the slot instead of fencing it */
  s[k].ep=0;
#elif defined(PEPOCH)  /* mutation: void(e+1) with e the epoch of the PRIMARY */
  s[k].ep=E(s[k].by,0)+1;
#else
  s[k].ep++;
#endif
  s[k].st=FREE; s[k].by=0; check() }
inline do_fence(a) {
#ifdef DELVOID
  if :: s[K(a,0)].st==PEND -> s[K(a,0)].st=FREE; s[K(a,0)].by=0 :: else fi;
#else
  if :: s[K(a,0)].st==PEND -> s[K(a,0)].st=FREE; s[K(a,0)].by=0 :: else fi; s[K(a,0)].ep++;
#endif
  check() }

inline decide(o,a) {                                             /* 1. where do my streams end? each looked up at its own moment */
  i=0;
  do
  :: atomic { i<NP(a) ->
       if
       :: esc[o] && i==0 -> K(a,0)=NAGG*POS+a; E(a,0)=0; i++
       :: else ->
          k=ag[o*3+i-esc[o]]*POS; v=0;
          do
          :: v<POS && s[k].st==COMM -> v=v+nev[s[k].by%NO]; k=k+nev[s[k].by%NO]
#ifdef BUILD_COMMITTED /* mutation: append behind a commit that is not finalised */
          :: v<POS && s[k].st==PEND && COMMITTED(s[k].by) -> v=v+nev[s[k].by%NO]; k=k+nev[s[k].by%NO]
#endif
#ifdef BUILD_PENDING   /* mutation: append behind an undecided pending */
          :: v<POS && s[k].st==PEND -> v=v+nev[s[k].by%NO]; k=k+nev[s[k].by%NO]
#endif
          :: else -> break
          od;
          if
          :: v>=POS -> goto stop                                 /* end of the modelled stream */
          :: v<POS && s[k].st==FREE -> K(a,i)=k; E(a,i)=s[k].ep; i++
          :: else -> skip                                        /* pending: wait (somebody resolves it) */
          fi; v=0; k=0
       fi }
  :: atomic { i>=NP(a) -> i=(NP(a)>1 -> FIRST : 1); break }
  od }

proctype owner(byte o) {
  byte a=o, i, k, v; bit ok;
again:
  decide(o,a);
  if
  :: nat[o] ->
     com = com|B(a);
     if
     :: atomic { NATIVE_OK(a) -> do_native(a); ok=1 }
     :: ok=0
     fi
  :: else ->
     if :: NP(a)>1 -> sent = sent|B(a) :: else fi;
     do                                                          /* 2. prepare; a refusal may leave others in the network */
     :: atomic { i<NP(a) ->
          if
          :: FREEAT(K(a,i),E(a,i)) -> do_prepare(a,i)
          :: OURS(K(a,i),a,PEND) -> skip                         /* an own earlier request got through */
#ifdef ADOPT
          :: i>0 && s[K(a,i)].st==FREE && s[K(a,i)].ep!=E(a,i) && s[K(a,i)].ep<=EPOCHS ->
             E(a,i)=s[K(a,i)].ep; adopted=adopted|B(a); i--
#endif
          :: else -> i=0; goto aborted
          fi; i++ }
     :: atomic { i>=NP(a) -> i=0; break }
     od;
     com = com|B(a);                                             /* 4. commit */
#ifdef ADOPT_PRIMARY   /* mutation: the primary, too, is taken at another epoch than the prepares have named */
     if :: atomic { s[K(a,0)].st==FREE && s[K(a,0)].ep!=E(a,0) -> E(a,0)=s[K(a,0)].ep } :: skip fi;
#endif
     if
     :: atomic { READY(a) -> do_commit(a); ok=1 }
     :: ok=0                                                     /* refused, or the answer got lost */
     fi
  fi;
  if :: ok -> atomic { gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop } :: else fi;
look:
  atomic {
    if
    :: COMMITTED(a) -> gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop
#ifdef LOST_IS_ABORTED   /* mutation: "mine = committed, anything else = aborted" */
    :: !COMMITTED(a) -> goto aborted
#else
    :: UNDECIDED(a) -> do_fence(a); goto look                    /* my request may yet arrive: fence it, read again */
    :: !COMMITTED(a) && !UNDECIDED(a) -> goto aborted
#endif
    fi }
aborted:
  atomic { gTold=gTold|B(a); sawA=sawA|B(a); check();
    a=a+NO; ok=0;
    if :: a<NT -> goto again :: else -> a=o fi }
stop: skip
}

#define CAN(c,w) :: atomic { (c) -> w }
#define PREP(a,i) CAN((sent&B(a)) && i<NP(a) && FREEAT(K(a,i),E(a,i)), do_prepare(a,i))
#define SETTLE(a,i) CAN((sawC&B(a)) && i<NP(a) && OURS(K(a,i),a,PEND), s[K(a,i)].st=COMM; check()) \
                    UNDO(a,i)
#ifdef NOFENCE         /* mutation: undo an undecided transaction without fencing its primary */
#define UNFENCED(a) CAN((sent&B(a)) && UNDECIDED(a) && !(sawA&B(a)), sawA=sawA|B(a))
#else
#define UNFENCED(a)
#endif
#ifdef HOLD
#define PREP0(a) PREP(a,0) UNDO(a,0)
#else
#define PREP0(a)
#endif
#define ALL(a) PREP0(a) PREP(a,1) PREP(a,2) SETTLE(a,1) SETTLE(a,2) UNFENCED(a) \
  CAN((com&B(a)) && !nat[(a)%NO] && READY(a), do_commit(a)) \
  CAN((com&B(a)) && nat[(a)%NO] && NATIVE_OK(a), do_native(a)) \
  CAN((sent&B(a)) && UNDECIDED(a), do_fence(a)) \
  CAN((sent&B(a)) && !(sawC&B(a)) && COMMITTED(a), sawC=sawC|B(a)) \
  CAN((sent&B(a)) && !(sawA&B(a)) && !COMMITTED(a) && !UNDECIDED(a), sawA=sawA|B(a))

proctype world() {     /* the network and every bystander */
end:
  do
  ALL(0)
  ALL(1)
#if NO*TRIES>2
  ALL(2)
#endif
#if NO*TRIES>3
  ALL(3)
#endif
  od
}

proctype reader() {    /* read committed of one slot: linearizable, never dirty */
  byte k, b, old;
end:
  do
  :: atomic { k<NAGG*POS-1 -> k++ }
  :: atomic { s[k].st==PEND -> b=s[k].by; old=LOGICAL(k) };
     atomic {                                                    /* later: its primary slot */
       if
       :: COMMITTED(b) -> assert(LOGICAL(k)==b+1)                /* READ: new data are committed */
#ifdef DIRTY           /* mutation: new data for an undecided transaction */
       :: UNDECIDED(b) -> assert(LOGICAL(k)==b+1)
#endif
#ifdef NOFOLLOW        /* mutation: old data whenever there is a pending */
       :: COMMITTED(b) -> assert(old==0)
#endif
       :: !COMMITTED(b) -> assert(old==0)                        /* READ: old data were current when the read began */
       fi; k=0; b=0; old=0 }
  od
}

init { atomic {
  run owner(0); run owner(1);
#if NO>2
  run owner(2);
#endif
  run world(); run reader() } }
#ifdef REACH           /* not vacuous: this must be violated */
active proctype reach() { assert(!(REACH)) }
#endif
