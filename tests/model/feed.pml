/* feed.pml - what consumers of a feed see: every committed slot once, in order, none skipped.
 *
 * Slots, epochs, transactions of two participants and their bystanders are those of atomicity.pml: a write is one atomic
 * conditional step, whatever was ever sent may arrive at any later time, any number of times, an owner may stop anywhere,
 * anybody may fence, finalise or undo. No lease is trusted.
 *
 * Without ORDERED, the store has no order of changes. Beside the write that may commit, an owner rings: a bell of its own, which
 * says (stream, version, epoch). Two sequencers (-DALONE: one), either of which may sleep anywhere, append to the log what lies
 * above the watermarks. A bell goes when its slot and the other participants are in the log, or its epoch is past; what
 * was over once is over for ever, so whoever saw that may remove the bell at any later time. -DRUN: a lane rings once,
 * ahead, for two slots that it writes one after the other. `world` also holds the bells, their removals, the watermarks, and an
 * append whose sequencer does not wait for it.
 * -DNATIVE: a transaction is one atomic request of its slots and its bell. The store decides it in one step, and from then on
 * takes no other write of these items; what it has written shows one by one.
 * With ORDERED, the store shows each slot at the place of its last change, and a consumer follows that.
 *
 *   F1 a committed slot appears once, at one place that never changes
 *   F2 a stream appears in the order of its versions; with ORDERED, what a decider had read appears before what it decided
 *   F3 nothing joins what could be read already
 *   F4 what is acknowledged appears without help: it is in the log, or a bell stands that leads to it, and nothing below a
 *      watermark is missing (what is committed and was never announced appears with the next slot of its stream, by F2)
 *   F5 only what is committed appears
 */
#define FREE 0
#define PEND 1
#define COMM 2
#define B(a) (1<<(a))

#if SCEN==1            /* a transaction of two streams, and a plain append to the one of its primary */
#define NO 2
hidden byte ag[4] = {0,1, 0,9};   hidden byte np[2] = {2,1};
#elif SCEN==2          /* … and a plain append to the other one */
#define NO 2
hidden byte ag[4] = {0,1, 1,9};   hidden byte np[2] = {2,1};
#elif SCEN==3          /* two plain appends to one stream */
#define NO 2
hidden byte ag[4] = {0,9, 0,9};   hidden byte np[2] = {1,1};
#elif SCEN==4          /* two transactions, in the opposite order */
#define NO 2
hidden byte ag[4] = {0,1, 1,0};   hidden byte np[2] = {2,2};
#elif SCEN==5          /* a transaction, and a plain append to either of its streams */
#define NO 3
hidden byte ag[6] = {0,1, 0,9, 1,9};   hidden byte np[3] = {2,1,1};
#endif
#ifndef TRIES
#define TRIES 1        /* attempts per command; each is a transaction of its own. With RUN: slots of a run */
#endif
#define NAGG 2
#define POS 2          /* versions per stream */
#define NT (NO*TRIES)
#define NS (NAGG*POS)
#define NP(a) np[(a)%NO]

typedef Slot { byte st; byte ep; byte by };
Slot s[NS];
byte key[NT*2], epo[NT*2];                    /* what the requests of attempt a carry for participant i (0 = primary) */
#define K(a,i) key[(a)*2+(i)]
#define E(a,i) epo[(a)*2+(i)]
byte sent, com;                               /* attempts whose prepares and bell / whose commit have been sent */
byte sawC, sawA;                              /* attempts somebody found committed / aborted */
byte gAck;                                    /* ghost: acknowledged */
byte gSeen;                                   /* ghost: slots that have appeared */
hidden byte x, y, z;
hidden byte F1, F2, F3, F4, F5;

#ifdef NATIVE
byte dec;                                     /* atomic requests that were applied */
byte hid, hidbell;                            /* the slots, and the bells, of these that do not show yet */
#define NAT(a) (NP(a)>1)
#define OPEN(k) (!IN(hid,k))                  /* a write gets through */
#define ALLSHOW(a) (!IN(hid,K(a,0)) && !IN(hid,K(a,1)) && !IN(hidbell,a))
#else
#define NAT(a) false
#define OPEN(k) true
#endif
#define FREEAT(k,e) (s[k].st==FREE && s[k].ep==(e))
#define CAN_DECIDE(a) (UNDECIDED(a) && FREEAT(K(a,1),E(a,1)) && OPEN(K(a,0)) && OPEN(K(a,1)))
#define COMMITTED(a) (s[K(a,0)].st==COMM && s[K(a,0)].by==a)
#define UNDECIDED(a) FREEAT(K(a,0),E(a,0))
#define IN(set,k) (((set)>>(k))&1)
#define FIRST(k) ((k)%POS==0)                 /* of its stream */

#ifdef ORDERED
byte order[NS], changed_n;                    /* the slots in the order of their last change */
byte reached;                                 /* the consumer has read so many of them */
inline changed(k) { d_step {
  x=0;
  do :: x<changed_n && order[x]!=k -> x++ :: else -> break od;
  if
  :: x<changed_n ->                                             /* it was there: it moves behind all others */
     if :: x<reached -> reached-- :: else fi;
     do :: x<changed_n-1 -> order[x]=order[x+1]; x++ :: else -> break od
  :: else -> changed_n++
  fi;
  order[changed_n-1]=k; x=0 } }
#define check() skip

#else
byte bell;                                    /* those that stand; bell a is attempt a's */
byte gone;                                    /* bells whose removal has been sent */
byte water[NAGG];                             /* the watermarks: so many slots of the stream are in the log */
byte items, newest;                           /* the log: how many items; the last one, a set of slots */
#define changed(k) skip
#define LOGGED(k) (water[(k)/POS]>(k)%POS)
#ifdef RUN
#define TOP(a) (K(a,0)+FIRST(K(a,0)))                    /* the last slot that the bell announces */
#else
#define TOP(a) K(a,0)
#endif
#if defined(NATIVE) && defined(VOIDS) /* mutation: what is free beside a committed slot is taken for reserved in vain */
#define FOLLOWED(a,k) (s[k].by!=a || NP(a)<2 || LOGGED(K(a,1)) || s[K(a,1)].st==FREE)
#elif defined(NATIVE)  /* the others are listed in its own bell only */
#define FOLLOWED(a,k) (s[k].by!=a || NP(a)<2 || LOGGED(K(a,1)))
#elif defined(ONLYPRIMARY) /* mutation: the other participants of a committed primary are not followed from there */
#define FOLLOWED(a,k) true
#else
#define FOLLOWED(a,k) (K(s[k].by,0)!=k || NP(s[k].by)<2 || LOGGED(K(s[k].by,1)))
#endif
#define FENCED(k,e) (s[k].st==FREE && s[k].ep>(e))
#ifdef NOFENCE         /* mutation: a bell goes when it has stood for long, without a fence */
#define LATE(k,e) (s[k].st==FREE && s[k].ep>=(e))
#else
#define LATE(k,e) FENCED(k,e)
#endif
#ifdef UNLOGGED        /* mutation: it goes when its slot is there, in the log or not */
#define DEALT(a,k) (s[k].st==COMM)
#else
#define DEALT(a,k) (LOGGED(k) && FOLLOWED(a,k))
#endif
#if defined(RUN)       /* the same bell for the whole run, while nothing is refused and on slots that nobody has touched */
#define RINGS(a) ((a)<NO)
#elif defined(BELIEVES) /* mutation: a later attempt (with RUN: whatever was refused) relies on the bell of the first */
#define RINGS(a) ((a)<NO)
#else
#define RINGS(a) true
#endif
/* nothing that the bell announces can still appear */
#define OVER(a) (LATE(K(a,0),E(a,0)) || (DEALT(a,K(a,0)) && (TOP(a)==K(a,0) || LATE(TOP(a),0) || DEALT(a,TOP(a)))))

inline check() { d_step {
  x=0;
  do
  :: x<NS -> F4 = (!LOGGED(x) || IN(gSeen,x)); assert(F4); x++  /* nothing below a watermark is missing */
  :: else -> break
  od; x=0;
  do
  :: x<NT ->                                                    /* what is acknowledged has been announced */
     if
     :: (gAck & B(x)) ->
        z=0; y=0;
        do
        :: y<NT -> if :: (bell & B(y)) && K(y,0)/POS==K(x,0)/POS && TOP(y)>=K(x,0) -> z=1 :: else fi; y++
        :: else -> break
        od;
        F4 = (z || (IN(gSeen,K(x,0)) && (NP(x)<2 || IN(gSeen,K(x,1))))); assert(F4)
     :: else
     fi; x++
  :: else -> break
  od; x=0; y=0; z=0 } }
#endif

inline appears(k) {                                             /* the checks of what a consumer sees now */
  F1 = !IN(gSeen,k); assert(F1);
  F2 = (FIRST(k) || IN(gSeen,k-1)); assert(F2);
  F5 = (s[k].st==COMM); assert(F5);
  gSeen=gSeen|B(k) }

inline do_prepare(a) { s[K(a,1)].st=PEND; s[K(a,1)].by=a; changed(K(a,1)) }
inline do_commit(a) { s[K(a,0)].st=COMM; s[K(a,0)].by=a; changed(K(a,0)); check() }
inline do_fence(k) { s[k].ep++; changed(k) }
#ifdef NATIVE
inline do_decide(a) { dec=dec|B(a); hid=hid|B(K(a,0))|B(K(a,1)); if :: !IN(bell,a) -> hidbell=hidbell|B(a) :: else fi }
inline do_show(a,k) { hid=hid&(255-B(k)); s[k].st=COMM; s[k].by=a; changed(k); check() }
#endif
inline do_finalise(a) { s[K(a,1)].st=COMM; changed(K(a,1)) }
inline do_undo(a) { s[K(a,1)].st=FREE; s[K(a,1)].ep++; changed(K(a,1)) }

inline decide(a) {                                              /* the heads of the streams; all below is in place */
  i=0;
  do
  :: i<NP(a) ->
     k=ag[(a%NO)*2+i]*POS; v=0;
     do
     :: v<POS && s[k].st==COMM -> v++; k++
#ifdef BUILD           /* mutation: append behind a commit that is not in place */
     :: v<POS && s[k].st==PEND && COMMITTED(s[k].by) -> v++; k++
#endif
     :: else -> break
     od;
     if
     :: v<POS && s[k].st==FREE -> K(a,i)=k; E(a,i)=s[k].ep; i++
     :: else -> break                                           /* end of the modelled stream, or somebody's pending */
     fi
  :: else -> break
  od;
  ok=(i>=NP(a)); i=0; k=0; v=0 }

proctype owner(byte o) {
  byte a=o, i, k, v; bit ok;
again:
  atomic {
    decide(a);
    if :: ok -> sent=sent|B(a) :: else -> goto stop fi; ok=0 };
#ifdef NATIVE
  if
  :: NAT(a) ->
     com=com|B(a);
     if
     :: atomic { CAN_DECIDE(a) -> do_decide(a) };
        if
        :: ALLSHOW(a) -> goto answered
        :: skip                                                 /* the answer got lost */
        fi
     :: skip                                                    /* refused, or the answer got lost */
     fi;
     atomic {
       if
       :: COMMITTED(a) -> skip
       :: UNDECIDED(a) && OPEN(K(a,0)) -> do_fence(K(a,0)); goto aborted
       :: !COMMITTED(a) && !UNDECIDED(a) -> goto aborted
       fi };
     atomic { !IN(hidbell,a) -> bell=bell|B(a) };
answered:
     atomic { gAck=gAck|B(a); sawC=sawC|B(a); check() };
     goto stop
  :: else
  fi;
#endif
write:
  if
  :: NP(a)<2
  :: else ->
     atomic { if :: FREEAT(K(a,1),E(a,1)) -> do_prepare(a) :: s[K(a,1)].st==PEND && s[K(a,1)].by==a :: else -> goto aborted fi }
  fi;
  com=com|B(a);
  if
  :: atomic { UNDECIDED(a) && OPEN(K(a,0)) -> do_commit(a) }
  :: skip                                                       /* refused, or the answer got lost */
  fi;
  atomic {
    if
    :: COMMITTED(a) -> skip
    :: UNDECIDED(a) && OPEN(K(a,0)) -> do_fence(K(a,0)); goto aborted
    :: !COMMITTED(a) && !UNDECIDED(a) -> goto aborted
    fi };
#ifndef ORDERED
#ifdef ACKFIRST        /* mutation: the bell comes after the acknowledgement */
  atomic { gAck=gAck|B(a); check() };
#endif
  atomic { if :: RINGS(a) -> bell=bell|B(a) :: else fi };
#endif
  atomic { gAck=gAck|B(a); sawC=sawC|B(a); check() };
#ifdef RUN
  atomic {
    if
    :: a<NO && FIRST(K(a,0)) && TRIES>1 -> K(a+NO,0)=TOP(a); E(a+NO,0)=0; a=a+NO; sent=sent|B(a); goto write
    :: else -> goto stop
    fi };
#else
  goto stop;
#endif
aborted:
  atomic { sawA=sawA|B(a);
#ifdef BELIEVES
    if :: a<NO -> bell=bell|B(a) :: else fi;                    /* that one was answered: it did stand */
#endif
#if defined(BELIEVES) || !defined(RUN)
    a=a+NO;
    if :: a<NT -> goto again :: else -> a=o fi
#endif
  };
stop: skip
}

#define CAN(c,w) :: atomic { (c) -> w }
#ifdef NATIVE
#define ATOMIC_REQUEST(a) \
  CAN((com&B(a)) && NAT(a) && CAN_DECIDE(a), do_decide(a)) \
  CAN((dec&B(a)) && IN(hid,K(a,0)), do_show(a,K(a,0))) \
  CAN((dec&B(a)) && IN(hid,K(a,1)), do_show(a,K(a,1))) \
  CAN(IN(hidbell,a), hidbell=hidbell&(255-B(a)); bell=bell|B(a); check())
#else
#define ATOMIC_REQUEST(a)
#endif
#define PROTOCOL(a) \
  ATOMIC_REQUEST(a) \
  CAN((sent&B(a)) && NP(a)>1 && !NAT(a) && FREEAT(K(a,1),E(a,1)), do_prepare(a)) \
  CAN((com&B(a)) && !NAT(a) && UNDECIDED(a) && OPEN(K(a,0)), do_commit(a)) \
  CAN((sent&B(a)) && UNDECIDED(a) && OPEN(K(a,0)), do_fence(K(a,0))) \
  CAN((sent&B(a)) && NP(a)>1 && !(sawC&B(a)) && COMMITTED(a), sawC=sawC|B(a)) \
  CAN((sent&B(a)) && NP(a)>1 && !(sawA&B(a)) && !COMMITTED(a) && !UNDECIDED(a), sawA=sawA|B(a)) \
  CAN((sawC&B(a)) && NP(a)>1 && s[K(a,1)].st==PEND && s[K(a,1)].by==a, do_finalise(a)) \
  CAN((sawA&B(a)) && NP(a)>1 && s[K(a,1)].st==PEND && s[K(a,1)].by==a, do_undo(a))

#ifdef ORDERED
#ifdef DONE            /* mutation: a primary is marked when the others are in place */
byte done;
#define IN_PLACE(a) (s[K(a,1)].st==COMM && s[K(a,1)].by==a)
#define FEED(a) CAN((sawC&B(a)) && !(done&B(a)) && NP(a)>1 && IN_PLACE(a), done=done|B(a); changed(K(a,0)))
#else
#define FEED(a)
#endif
#define WATER(t)
#ifdef IGNORES         /* mutation: … and consumers pass what they have seen before */
#define SEEN(k) IN(gSeen,k)
#else
#define SEEN(k) 0
#endif

proctype consumer() {
  byte k;
end:
  do
  :: atomic { reached<changed_n ->
       k=order[reached]; reached++;
       if
       :: s[k].st==COMM && !SEEN(k) ->
          appears(k);
          x=0;
          do                                                    /* what its decider had read came first */
          :: x<NP(s[k].by) -> F2 = (FIRST(K(s[k].by,x)) || IN(gSeen,K(s[k].by,x)-1)); assert(F2); x++
          :: else -> break
          od; x=0
       :: else -> skip                                          /* a pending one comes again; it need not be waited for */
       fi;
       if
       :: reached==changed_n ->                                 /* at the end, all that is in place has appeared */
          x=0; do :: x<NS -> F4 = (s[x].st!=COMM || IN(gSeen,x)); assert(F4); x++ :: else -> break od; x=0
       :: else
       fi; k=0 }
  od }

#else
#ifdef SHARED          /* mutation: a stream has one bell, up to the highest version rung for, removed if that is unchanged */
#define SAME(a,b) (K(a,0)/POS==K(b,0)/POS)
inline remove(a) {
  x=0; z=1;
#ifndef ANY_UP_TO      /* mutation: … or whatever has been rung meanwhile */
  do :: x<NT -> if :: (bell & B(x)) && SAME(x,a) && K(x,0)>K(a,0) -> z=0 :: else fi; x++ :: else -> break od; x=0;
#endif
  do :: x<NT -> if :: z && (bell & B(x)) && SAME(x,a) -> bell=bell&(255-B(x)) :: else fi; x++ :: else -> break od; x=0; z=0 }
#else
inline remove(a) { bell=bell&(255-B(a)) }
#endif
#ifdef RUN
#define FENCE_RUN(a) CAN((bell&B(a)) && TOP(a)!=K(a,0) && s[K(a,0)].st==COMM && FREEAT(TOP(a),0), do_fence(TOP(a)))
#else
#define FENCE_RUN(a)
#endif
#define FEED(a) FENCE_RUN(a) \
  CAN((sent&B(a)) && RINGS(a) && !(bell&B(a)) && (!NAT(a) || (sawC&B(a))), bell=bell|B(a)) \
  CAN((bell&B(a)) && !(gone&B(a)) && OVER(a), gone=gone|B(a)) \
  CAN((gone&B(a)) && (bell&B(a)), remove(a); check())
#ifdef LOWERS          /* mutation: a watermark is set, not raised */
#define RAISE(t,v) CAN(IN(gSeen,(t)*POS+(v)) && water[t]!=(v)+1, water[t]=(v)+1)
#else
#define RAISE(t,v) CAN(IN(gSeen,(t)*POS+(v)) && water[t]<=(v), water[t]=(v)+1)
#endif
#define WATER(t) RAISE(t,0) RAISE(t,1)

byte late_n, late;                            /* an append on its way: to place late_n - 1 (0: none); the slots */
inline raise(t,set) {
  if :: IN(set,(t)*POS+1) && water[t]<2 -> water[t]=2 :: else
     if :: IN(set,(t)*POS) && water[t]<1 -> water[t]=1 :: else fi fi }
inline do_append(n,set) {
#ifdef OVERWRITES      /* mutation: an append does not ask whether the place is taken */
  if
  :: true ->
#else
  if
  :: items==n ->
#endif
     F3 = (items==n); assert(F3);                               /* no gap, and nothing at a place that was read */
     newest=set; items++; x=0;
     do :: x<NS -> if :: IN(set,x) -> appears(x) :: else fi; x++ :: else -> break od; x=0; check()
  :: else
  fi }
inline read_water() { low[0]=water[0]; low[1]=water[1] }

/* It chooses what it appends in the step in which it appends: what is in place stays so, and it takes as many as it likes. */
proctype sequencer() {
  byte n, last, low[NAGG], set, t, v;
end:
  do
  :: sent!=0;                                                   /* the end of the log */
#ifdef ENDLATER        /* mutation: it is read after the watermarks */
     atomic { read_water() };
#endif
     atomic { n=items; last=newest };
     atomic {                                                   /* the watermarks, once they are those of the last item */
#ifdef ENDLATER
       raise(0,last); raise(1,last);
#elif defined(UNRAISED) /* mutation: they are raised later, and what the last item has is appended once more */
       read_water(); raise(0,last); raise(1,last);
#elif defined(BYOTHERS) /* mutation: they are raised later; what the last item has is left out, but not that of the one before */
       read_water();
#else
       raise(0,last); raise(1,last); read_water();
#endif
#ifndef BYOTHERS
       last=0;
#endif
       check() };
     atomic {                                                   /* the slots above, as many as it likes */
       do
       :: t<NAGG ->
          v=low[t];
          do
          :: v<POS && s[t*POS+v].st==COMM -> if :: !IN(last,t*POS+v) -> set=set|B(t*POS+v) :: else fi; v++
          :: break
          od; v=0; t++
       :: else -> break
       od; t=0;
#ifdef WATERFIRST      /* mutation: the watermarks are raised before the append */
       raise(0,set); raise(1,set);
#endif
       if
       :: set && n<=NS -> do_append(n,set)
       :: set && late_n==0 -> late_n=n+1; late=set              /* it does not learn what becomes of it */
       :: skip
       fi; check();
       n=0; last=0; low[0]=0; low[1]=0; set=0 }
  od }
#endif

proctype world() {     /* the network and every bystander */
end:
  do
  PROTOCOL(0) FEED(0)
  PROTOCOL(1) FEED(1)
#if NT>2
  PROTOCOL(2) FEED(2)
#endif
#if NT>3
  PROTOCOL(3) FEED(3)
#endif
  WATER(0) WATER(1)
#ifndef ORDERED
  CAN(late_n && items<=NS, do_append(late_n-1,late); late_n=0; late=0)
#endif
  od
}

init { atomic {
  run owner(0); run owner(1);
#if NO>2
  run owner(2);
#endif
  run world();
#ifdef ORDERED
  run consumer()
#else
  run sequencer();
#ifndef ALONE
  run sequencer();
#endif
  skip
#endif
  } }
#ifdef REACH           /* not vacuous: this must be violated */
active proctype reach() { assert(!(REACH)) }
#endif
